internal import CLinux
package import Foundation

/// A child process of a test. It leads a session of its own, and every signal is unblocked and at its default, as in a
/// login shell: the threads of a test block most signals.
///
/// Not thread-safe. If the process has not ended when the object is released, it is killed with its process group.
package final class ChildProcess {
  /// What a descriptor of the child refers to.
  package enum Stream {
    case null
    case inherited
    case descriptor(Int32)
    /// A file that is opened for reading and writing. A terminal becomes the controlling terminal of the session.
    case file(String)
  }

  package let id: Int32
  private var ending: Int32?
  private var guardian: Guardian?

  /// Starts `command`, whose first element is a path or is looked up in the `PATH` of `environment`.
  ///
  /// - Parameters:
  ///   - package: The Debian package that contains the program, for the error if there is no such program.
  ///   - directory: The working directory; by default that of the tests.
  ///   - streams: The descriptors 0, 1, 2 and so on. The child has no others.
  ///   - endsWithTests: Whether the process is also killed if the test process crashes.
  package init(
    _ command: [String], package: String? = nil, environment: [String: String], directory: String? = nil,
    streams: [Stream] = [.null, .null, .null], endsWithTests: Bool = false
  ) throws {
    if let package, !Self.isInstalled(command[0], environment) {
      throw TestFailure("These tests need \(command[0]). Install the package \(package).")
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Copies with high numbers, so that no action replaces a descriptor that a later action needs.
    var copies: [Int32] = []
    defer { copies.forEach { close($0) } }
    for (index, stream) in streams.enumerated() {
      let number = Int32(index)
      switch stream {
      case .null: posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
      case .inherited: break
      case .file(let path): posix_spawn_file_actions_addopen(&actions, number, path, O_RDWR, 0)
      case .descriptor(let descriptor):
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 64)
        guard copy >= 0 else { throw TestFailure("fcntl failed: \(errno)") }
        copies.append(copy)
        posix_spawn_file_actions_adddup2(&actions, copy, number)
      }
    }
    // Tests run at the same time, and not all of them open their descriptors with O_CLOEXEC.
    posix_spawn_file_actions_addclosefrom_np(&actions, Int32(streams.count))

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let newSession: Int32 = 0x80  // POSIX_SPAWN_SETSID, which glibc declares only for _GNU_SOURCE
    posix_spawnattr_setflags(
      &attributes, Int16(newSession | Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)))

    // `env` changes the directory and looks up the program, and then executes it in the same process.
    let words = ["env"] + (directory.map { ["--chdir=\($0)"] } ?? []) + command
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    // The program may be built with a sanitizer, so it gets the options of the sanitizers.
    let inherited = ProcessInfo.processInfo.environment.filter {
      ["ASAN_OPTIONS", "TSAN_OPTIONS"].contains($0.key)
    }
    let variables: [UnsafeMutablePointer<CChar>?] =
      environment.merging(inherited) { given, _ in given }.map { strdup("\($0)=\($1)") } + [nil]
    defer { (arguments + variables).forEach { free($0) } }
    var process: pid_t = 0
    let error = posix_spawn(&process, "/usr/bin/env", &actions, &attributes, arguments, variables)
    guard error == 0 else { throw TestFailure("posix_spawn failed: \(error)") }
    id = process
    if endsWithTests { guardian = try Guardian(of: id) }
  }

  deinit {
    if ending == nil { kill() }
  }

  private static func isInstalled(_ program: String, _ environment: [String: String]) -> Bool {
    let paths =
      program.contains("/")
      ? [program] : (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(program)" }
    return paths.contains { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Sends a signal to the process, or to its process group.
  package func send(_ signal: Int32, toGroup: Bool = false) { _ = Glibc.kill(toGroup ? -id : id, signal) }

  /// Kills the process group with SIGKILL and waits until the process has ended.
  package func kill() {
    guardian = nil
    send(SIGKILL, toGroup: true)
    if ending == nil { ending = wait(0) }
  }

  private func wait(_ options: Int32) -> Int32? {
    var status: Int32 = 0
    guard waitpid(id, &status, options) == id else { return nil }
    return status
  }

  /// The exit status, or minus the number of the signal that ended the process; `nil` while it runs.
  package func status() -> Int32? {
    if ending == nil { ending = wait(WNOHANG) }
    return ending.map { $0 & 0x7F == 0 ? ($0 >> 8) & 0xFF : -($0 & 0x7F) }
  }

  /// Waits until the process is stopped by a signal or has ended, and returns whether it is stopped.
  package func waitForStop() -> Bool {
    guard ending == nil, let status = wait(WUNTRACED) else { return false }
    if status & 0xFF == 0x7F { return true }
    ending = status
    return false
  }

  /// Waits for the end and returns the status. Kills the process and throws if it runs for longer than `timeout`.
  package func end(timeout: Duration = .seconds(60)) throws -> Int32 {
    let end = ContinuousClock.now + timeout
    while true {
      if let status = status() { return status }
      if ContinuousClock.now > end {
        kill()
        throw TestFailure("A process had not ended after \(timeout).")
      }
      usleep(1000)
    }
  }
}

extension ChildProcess {
  package struct Result: Sendable {
    package let status: Int32
    package let output: Data
    package let errors: Data
    package var outputText: String { String(decoding: output, as: UTF8.self) }
    package var errorText: String { String(decoding: errors, as: UTF8.self) }
  }

  /// Runs `command` to its end and returns its status and what it wrote.
  package static func run(
    _ command: [String], package: String? = nil, environment: [String: String], directory: String? = nil,
    input: Data = Data(), timeout: Duration = .seconds(120)
  ) throws -> Result {
    // Files in memory, so that neither side waits for the other.
    let files = try (0..<3).map { _ in
      let descriptor = coffer_memfd("test")
      guard descriptor >= 0 else { throw TestFailure("memfd_create failed: \(errno)") }
      return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
    try files[0].write(contentsOf: input)
    try files[0].seek(toOffset: 0)
    let process = try ChildProcess(
      command, package: package, environment: environment, directory: directory,
      streams: files.map { .descriptor($0.fileDescriptor) })
    let status = try process.end(timeout: timeout)
    let written = try files[1...].map { file in
      try file.seek(toOffset: 0)
      return try file.readToEnd() ?? Data()
    }
    return Result(status: status, output: written[0], errors: written[1])
  }
}

/// A shell that kills a process when the test process has ended, however it ended.
private final class Guardian {
  private let process: ChildProcess
  private let end: Int32

  init(of id: pid_t) throws {
    var ends: [Int32] = [-1, -1]
    guard coffer_pipe(&ends) == 0 else { throw TestFailure("pipe2 failed: \(errno)") }
    defer { close(ends[0]) }
    end = ends[1]
    process = try ChildProcess(
      ["/bin/sh", "-c", "cat; kill -9 -\(id) \(id)"], environment: ["PATH": "/usr/bin:/bin"],
      streams: [.descriptor(ends[0]), .null, .null])
  }

  deinit {
    process.kill()
    close(end)
  }
}

/// Why a test cannot go on.
package struct TestFailure: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}
