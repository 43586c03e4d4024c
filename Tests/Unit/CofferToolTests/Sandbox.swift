import Foundation
import Testing

/// A private directory with a home in it, and the built `secret` on PATH: nothing of the user's is in reach.
///
/// Commands run in a session of their own, without a controlling terminal.
final class Sandbox {
  let directory: String
  var environment: [String: String]

  struct Result {
    let status: Int32
    let output: Data
    let errors: Data
    var outputText: String { String(decoding: output, as: UTF8.self) }
    var errorText: String { String(decoding: errors, as: UTF8.self) }
  }

  init() throws {
    let template = FileManager.default.temporaryDirectory.path + "/secret-tests-XXXXXX"
    var bytes = Array(template.utf8CString)
    try #require(mkdtemp(&bytes) != nil)
    directory = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    for name in ["bin", "home", "run", "tmp", "work"] {
      try FileManager.default.createDirectory(
        atPath: "\(directory)/\(name)", withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o700])
    }
    try FileManager.default.createSymbolicLink(
      atPath: "\(directory)/bin/secret", withDestinationPath: try Self.executable())
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
    // What a sanitizer is to do, where the tool is built with one.
    for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
      environment[name] = ProcessInfo.processInfo.environment[name]
    }
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: directory)
    } catch {
      Issue.record("the private directory could not be removed: \(error)")
    }
  }

  /// The `secret` that was built beside this test bundle.
  static func executable() throws -> String {
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = (tests as NSString).deletingLastPathComponent + "/secret"
    try #require(FileManager.default.isExecutableFile(atPath: path), "there is no built secret at \(path)")
    return path
  }

  /// The directory that commands run in.
  var workingDirectory: String { directory + "/work" }

  /// Runs a shell command to its end; one that does not end in two minutes has hung, and fails.
  func shell(_ command: String, input: Data = Data()) throws -> Result {
    let scratch = directory + "/" + UUID().uuidString
    let paths = [".in", ".out", ".err"].map { scratch + $0 }
    try input.write(to: URL(fileURLWithPath: paths[0]))
    defer { paths.forEach { unlink($0) } }
    let streams = paths.enumerated().map { index, path in
      open(path, (index == 0 ? O_RDONLY : O_WRONLY | O_CREAT) | O_CLOEXEC, 0o600)
    }
    defer { streams.forEach { close($0) } }
    let spawning = try Spawning(command, .descriptors(streams[0], streams[1], streams[2]), in: self)
    let end = ContinuousClock.now + .seconds(120)
    var status = spawning.status()
    while status == nil {
      if ContinuousClock.now > end { kill(-spawning.process, SIGKILL) }
      usleep(1000)
      status = spawning.status()
    }
    #expect(ContinuousClock.now < end, "hung: \(command)")
    return Result(
      status: status ?? -1,
      output: try Data(contentsOf: URL(fileURLWithPath: paths[1])),
      errors: try Data(contentsOf: URL(fileURLWithPath: paths[2])))
  }
}
