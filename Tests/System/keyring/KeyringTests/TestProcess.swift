#if Keyring
import Foundation

/// A program that a test runs, and that does not outlive it: a shell beside it kills it when the shell's
/// standard input ends, which it also does when the tests crash.
final class TestProcess {
  private let process = Process()
  private let leash = Pipe()
  private let output: FileHandle

  /// `package` is what to install where the program is missing.
  init(
    _ program: String,
    _ arguments: [String],
    package: String,
    input: String = "",
    isDaemon: Bool = true,
    environment: [String: String]
  ) throws {
    guard let path = Self.find(program, environment) else {
      throw TestFailure("These tests need \(program). Install the package \(package).")
    }
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)")
    guard FileManager.default.createFile(atPath: file.path, contents: nil) else {
      throw TestFailure("A file for output could not be made.")
    }
    output = try FileHandle(forUpdating: file)
    try FileManager.default.removeItem(at: file)
    // The program runs in the foreground: a shell's `wait` needs SIGCHLD, which threads of a test may
    // have blocked. Its input is in its environment, since these are no secrets.
    let once = #"printf %s "$TEST_INPUT" | TEST_INPUT= "$@""#
    let daemon = """
      exec 3<&0
      (cat <&3 >/dev/null; kill -9 "$(cat "$TEST_PID_FILE")") 2>/dev/null &
      leash=$!
      printf %s "$TEST_INPUT" | sh -c 'echo $$ >"$TEST_PID_FILE"; exec "$@"' sh "$@"
      status=$?
      kill -9 $leash 2>/dev/null
      rm -f "$TEST_PID_FILE"
      exit $status
      """
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", isDaemon ? daemon : once, "sh", path] + arguments
    process.environment = environment.merging(["TEST_INPUT": input, "TEST_PID_FILE": file.path + ".pid"]) {
      $1
    }
    process.standardInput = leash
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    try leash.fileHandleForReading.close()
  }

  deinit { kill() }

  private static func find(_ program: String, _ environment: [String: String]) -> String? {
    if program.hasPrefix("/") {
      return FileManager.default.isExecutableFile(atPath: program) ? program : nil
    }
    return (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(program)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Ends it with SIGKILL, and waits until it is gone.
  func kill() {
    try? leash.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Waits for its end.
  func finish() throws -> (status: Int32, output: String) {
    let end = Date() + 60
    while process.isRunning {
      if Date() > end {
        kill()
        throw TestFailure("A program had not ended after a minute.")
      }
      usleep(5000)
    }
    try output.seek(toOffset: 0)
    let data = try output.readToEnd() ?? Data()
    return (process.terminationStatus, String(decoding: data, as: UTF8.self))
  }
}
#endif
