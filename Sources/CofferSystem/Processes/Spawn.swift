package import CLinux
internal import CofferLibc

/// A program to start as a child process, with `posix_spawn`.
package struct Spawn {
  /// What a descriptor of the program refers to.
  package enum Source {
    case nullDevice
    /// A descriptor of this process. It may be one that closes when a program is executed.
    case descriptor(Int32)
  }

  package enum Environment {
    /// The environment of this process, without a copy of it.
    case inherited
    case variables([String: String])
    /// A C array of `NAME=value` texts with `nil` at the end. Must be valid during the start.
    case vector(UnsafePointer<UnsafeMutablePointer<CChar>?>)
  }

  package var environment = Environment.inherited
  /// The program's descriptors that differ from this process's, applied in order.
  package var descriptors: [(number: Int32, source: Source)] = []
  /// Whether the program gets no other descriptor than the three standard ones.
  package var closesOthers = false
  /// The signals that the program blocks at its start. None by default.
  package var blockedSignals: sigset_t
  /// The signals that have their default action in the program. The others stay ignored if this process ignores them.
  package var defaultSignals: [Int32] = []
  /// Whether the program gets a process group of its own, whose id is its process id.
  package var isGroupLeader = false
  /// Whether the program leads a session of its own, without a controlling terminal.
  package var isSessionLeader = false
  /// The controlling terminal on which the program's process group becomes the foreground group, if glibc can do that
  /// before the program is executed.
  package var foregroundTerminal: Int32?

  package init() {
    blockedSignals = sigset_t()
    sigemptyset(&blockedSignals)
  }

  package static let allSignals: [Int32] = Array(1...64)

  /// Starts a program and returns its process id. The first argument names the program, which is searched for on `PATH`
  /// unless the name contains a slash. Throws the `errno`: `ENOENT` if the program was not found.
  package func start(_ arguments: [String]) throws(FileSystemError) -> Int32 {
    let vector: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { vector.forEach { free($0) } }
    return try start(vector)
  }

  /// Starts a program with a C array of arguments, `nil` at the end. Their bytes are passed on unchanged. `file` is the
  /// program's path; without it, the first argument names the program. Throws as ``start(_:)`` does.
  package func start(
    _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>, file: UnsafePointer<CChar>? = nil
  ) throws(FileSystemError) -> Int32 {
    guard let program = file ?? arguments.pointee.map({ UnsafePointer($0) }) else { throw FileSystemError(EINVAL) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, source) in descriptors {
      switch source {
      case .nullDevice: posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
      case .descriptor(let other): posix_spawn_file_actions_adddup2(&actions, other, number)
      }
    }
    if closesOthers { posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1) }
    if let foregroundTerminal {
      _ = coffer_spawn_in_foreground(&actions, foregroundTerminal)
    }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (blocked, restored) = (blockedSignals, sigset_t())
    sigemptyset(&restored)
    for signal in defaultSignals { sigaddset(&restored, signal) }
    posix_spawnattr_setsigmask(&attributes, &blocked)
    posix_spawnattr_setsigdefault(&attributes, &restored)
    posix_spawnattr_setpgroup(&attributes, 0)
    let group = isGroupLeader ? POSIX_SPAWN_SETPGROUP : 0
    let session: Int32 = isSessionLeader ? 0x80 : 0  // POSIX_SPAWN_SETSID, declared only for _GNU_SOURCE
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group | session))

    var process: pid_t = 0
    func spawn(_ variables: UnsafePointer<UnsafeMutablePointer<CChar>?>?) -> Int32 {
      posix_spawnp(&process, program, &actions, &attributes, arguments, variables)
    }
    let code: Int32
    switch environment {
    case .inherited: code = spawn(coffer_environment())
    case .variables(let variables):
      let vector: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
      defer { vector.forEach { free($0) } }
      code = spawn(vector)
    case .vector(let vector): code = spawn(vector)
    }
    if code != 0 { throw FileSystemError(code) }
    return process
  }
}

package enum ProcessEnd: Hashable, Sendable {
  case status(Int32)
  case signal(Int32)

  /// Decodes the status of waitpid(2).
  package init(waitStatus: Int32) {
    let signal = waitStatus & 0x7F
    self = signal == 0 ? .status((waitStatus >> 8) & 0xFF) : .signal(signal)
  }

  /// Returns the status of a child process that has ended or, with `WUNTRACED` in `options`, stopped; `nil` if it runs.
  /// Does not wait.
  ///
  /// Repeats the call after `EINTR`. `SIGCHLD` reports a change once, so a caller that gave up would wait forever.
  package static func changed(_ process: Int32, _ options: Int32 = 0) -> Int32? {
    var status: Int32 = 0
    while true {
      let changed = waitpid(process, &status, WNOHANG | options)
      if changed == process { return status }
      if changed == 0 || errno != EINTR { return nil }
    }
  }

  /// Waits for the end of a child process. Returns `nil` if `deadline` passes first. Throws `ECHILD` if there is no
  /// such child.
  package init?(of process: Int32, until deadline: ContinuousClock.Instant? = nil) throws(FileSystemError) {
    var status: Int32 = 0
    while true {
      let ended = waitpid(process, &status, deadline == nil ? 0 : WNOHANG)
      if ended == process { break }
      if ended < 0 && errno != EINTR { throw FileSystemError(errno) }
      if let deadline {
        if .now > deadline { return nil }
        usleep(2000)
      }
    }
    self.init(waitStatus: status)
  }
}
