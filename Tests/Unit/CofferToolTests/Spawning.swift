import Foundation
import Testing

/// A shell command in a session of its own, with signals as in a fresh login: test threads block most.
struct Spawning {
  let process: pid_t

  /// `streams` are the descriptors that become 0, 1 and 2, or the path of the terminal that is all three.
  enum Streams {
    case descriptors(Int32, Int32, Int32)
    case terminal(String)
  }

  init(_ command: String, _ streams: Streams, in sandbox: Sandbox) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    switch streams {
    case .descriptors(let input, let output, let errors):
      posix_spawn_file_actions_adddup2(&actions, input, 0)
      posix_spawn_file_actions_adddup2(&actions, output, 1)
      posix_spawn_file_actions_adddup2(&actions, errors, 2)
    case .terminal(let path):
      // The first terminal that a session's leader opens becomes the session's.
      posix_spawn_file_actions_addopen(&actions, 0, path, O_RDWR, 0)
      posix_spawn_file_actions_adddup2(&actions, 0, 1)
      posix_spawn_file_actions_adddup2(&actions, 0, 2)
    }

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

    let words = ["/bin/sh", "-c", "cd '\(sandbox.workingDirectory)' || exit 99; \(command)"]
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let environment: [UnsafeMutablePointer<CChar>?] =
      sandbox.environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { (arguments + environment).forEach { free($0) } }
    var process: pid_t = 0
    try #require(posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment) == 0)
    self.process = process
  }

  /// The exit status, or minus the signal that ended it; `nil` while it runs.
  func status() -> Int32? {
    var status: Int32 = 0
    guard waitpid(process, &status, WNOHANG) == process else { return nil }
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : -(status & 0x7F)
  }
}
