internal import ArgumentParser
internal import CLinux
internal import Coffer
internal import Glibc

/// A command that runs as a child in this process's own group: the terminal's keys reach it as they would
/// without this process, signals sent to this process are passed on, and its end is this process's end.
struct ForegroundChild: ~Copyable {
  /// How the command ended.
  enum End {
    case status(Int32)
    case signal(Int32)
  }

  private let process: pid_t
  private let signals: BlockedSignals
  private let streams: [OutputRelay]

  /// Starts the program, which is found on PATH, in this process's environment. `arguments` ends with `nil`.
  /// `mask` is what the command is to hold back, where that is not what this thread does. Throws the exit
  /// status 127 or 126, after saying why, where it cannot be started.
  init(
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
    streams: [OutputRelay] = [],
    mask: sigset_t? = nil
  ) throws {
    // Ignored, as some programs leave it, it would take the child's status away.
    signal(SIGCHLD, SIG_DFL)
    let signals = try BlockedSignals([
      SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGWINCH,
    ])
    process = try Self.start(arguments, streams, mask: mask ?? signals.previous)
    self.signals = signals
    self.streams = streams
  }

  private static func start(
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
    _ streams: [OutputRelay],
    mask: sigset_t
  ) throws -> pid_t {

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for stream in streams {
      for descriptor in stream.replaced {
        posix_spawn_file_actions_adddup2(&actions, stream.writing, descriptor)
      }
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var mask = mask
    var restored = sigset_t()
    sigemptyset(&restored)
    for number in ProcessHardening.raised.restored { sigaddset(&restored, number) }
    posix_spawnattr_setsigmask(&attributes, &mask)
    posix_spawnattr_setsigdefault(&attributes, &restored)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var process: pid_t = 0
    let code = ProcessHardening.raised.whileLowered {
      arguments[0].map {
        posix_spawnp(&process, $0, &actions, &attributes, arguments, coffer_environment())
      } ?? EINVAL
    }
    for stream in streams { close(stream.writing) }
    if code != 0 {
      let program = arguments[0].map { String(cString: $0) } ?? ""
      note("secret: The command “\(program)” could not be started: \(systemMessage(code)).")
      throw ExitCode(code == ENOENT ? 127 : 126)
    }
    return process
  }

  /// Passes on what the command prints and the signals that come, until it has ended.
  consuming func wait() throws -> End {
    while true {
      let open = streams.filter { $0.isOpen }
      let (arrival, ready) = try signals.wait(orReadable: open.map(\.reading))
      for index in ready { open[index].passOn() }
      switch arrival?.signal {
      case nil: break
      case SIGCHLD?:
        var status: Int32 = 0
        guard waitpid(process, &status, WNOHANG) == process else { break }
        try streams.forEach { try $0.finish() }
        let signal = status & 0x7F
        return signal == 0 ? .status((status >> 8) & 0xFF) : .signal(signal)
      case SIGWINCH?:
        // The terminal has told the command already, perhaps before its own terminal had the new size.
        if streams.map({ $0.resize() }).contains(true) { kill(process, SIGWINCH) }
      case let signal?:
        if arrival?.isFromKernel != true { kill(process, signal) }
      }
    }
  }

  /// Ends this process as the command ended.
  static func end(as end: End) -> any Error {
    switch end {
    case .status(let status): return ExitCode(status)
    case .signal(let number):
      signal(number, SIG_DFL)
      var one = sigset_t()
      sigemptyset(&one)
      sigaddset(&one, number)
      pthread_sigmask(SIG_UNBLOCK, &one, nil)
      raise(number)
      return ExitCode(128 + number)
    }
  }
}
