import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// A private directory with a home in it and the built `secret` on `PATH`. Commands do not find the user's own files.
///
/// Each command leads a session of its own, without a controlling terminal.
final class Sandbox {
  let directory: String
  var environment: [String: String]
  private let temporaryDirectory: TemporaryDirectory

  init() throws {
    temporaryDirectory = try TemporaryDirectory()
    let path = temporaryDirectory.path
    // As root, the tool would use root's own home in place of a directory that another user can exchange.
    try #require(BaseDirectories { _ in path }.home == path, "TMPDIR is not root's")
    directory = path
    for name in ["bin", "home", "run", "tmp", "work"] { try temporaryDirectory.makeDirectory(name) }
    try FileManager.default.createSymbolicLink(
      atPath: "\(directory)/bin/secret", withDestinationPath: try Self.executable())
    // Acts as a person who reads and agrees on a terminal: passes on the digest or the pin that the tool prints.
    let agree = """
      #!/bin/sh
      case " $* " in
      *" trust "*)
        pin=$("$@" 2>&1 >/dev/null | sed -n 's/^Its pin is \\(coffer-pin-v1:[A-Za-z0-9_-]*\\)\\..*/\\1/p')
        exec "$@" ${pin:+--pin "$pin"} ;;
      *)
        COFFER_ALLOW=$("$@" 2>&1 >/dev/null | sed -n 's/.*COFFER_ALLOW=\\([0-9a-f]*\\) secret.*/\\1/p') exec "$@" ;;
      esac
      """
    try Data(agree.utf8).write(to: URL(filePath: "\(directory)/bin/agree"))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: "\(directory)/bin/agree")
    environment = [
      "PATH": "\(directory)/bin:/usr/local/bin:/usr/bin:/bin",
      "HOME": "\(directory)/home",
      "XDG_DATA_HOME": "\(directory)/home/data",
      "XDG_CONFIG_HOME": "\(directory)/home/config",
      "XDG_STATE_HOME": "\(directory)/home/state",
      "XDG_RUNTIME_DIR": "\(directory)/run",
      "TMPDIR": "\(directory)/tmp",
      "LC_ALL": "C.UTF-8",
    ]
  }

  /// A value that no other test uses: wherever it is found, this test has leaked it.
  static func canary() -> String { "canary-\(UInt64.random(in: 1 << 60...UInt64.max))" }

  /// The `secret` that was built beside this test bundle.
  static func executable() throws -> String {
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = (tests as NSString).deletingLastPathComponent + "/secret"
    try #require(FileManager.default.isExecutableFile(atPath: path), "there is no built secret at \(path)")
    return path
  }

  /// The working directory of commands.
  var workingDirectory: String { directory + "/work" }

  /// Runs a shell command to its end. A command that runs for two minutes hangs, and the test fails.
  func shell(_ command: String, input: Data = Data()) throws -> ChildProcess.Result {
    try ChildProcess.run(
      ["/bin/sh", "-c", command], environment: environment, directory: workingDirectory, input: input)
  }

  /// Starts a shell command.
  func start(
    _ command: String, streams: [ChildProcess.Stream] = [.null, .null, .null]
  ) throws -> ChildProcess {
    try ChildProcess(
      ["/bin/sh", "-c", command], environment: environment, directory: workingDirectory, streams: streams)
  }
}
