internal import CLinux
internal import Glibc

/// What is set for the whole process before anything else, and what it was before, for a command to inherit.
struct ProcessHardening: Sendable {
  private let coreLimit: rlimit
  /// Of the signals that are ignored here, those that were not before.
  let restored: [Int32]

  /// The guards that are up. The first use raises them.
  static let raised = ProcessHardening()

  private init() {
    Self.occupyStandardDescriptors()
    Self.removeCrashHandlers()

    // No core file, and no other process of this user may attach or read its memory. Only the soft limit is
    // lowered: the hard one could not be given back to a command that is run.
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    coreLimit = limit
    var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    _ = coffer_set_undumpable()

    // A reader that went away and a limit on the size of files are errors to report, and no reason to die
    // without a word.
    restored = [SIGPIPE, SIGXFSZ].filter { !Self.isIgnoring(signal($0, SIG_IGN)) }
  }

  /// Puts back what a command that replaces this process should find as it was. Being undumpable ends by
  /// itself when another program is executed.
  func lower() {
    var limit = coreLimit
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    for number in restored { signal(number, SIG_DFL) }
  }

  /// Runs `body`, which starts a command as a child, with what the command should find as it was. Of the
  /// signals, the ones that `body` must give their default action are ``restored``.
  func whileLowered<R>(_ body: () throws -> R) rethrows -> R {
    var limit = coreLimit
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    defer {
      var none = rlimit(rlim_cur: 0, rlim_max: limit.rlim_max)
      setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    }
    return try body()
  }

  /// Swift's runtime may answer a crash, and Ctrl-\, by having another program print what is in this one's
  /// memory and registers: values among it. That program also waits for ever where it may not attach.
  private static func removeCrashHandlers() {
    for number in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP] {
      let handler = signal(number, SIG_DFL)
      if isIgnoring(handler) { signal(number, SIG_IGN) }
    }
  }

  private static func isIgnoring(_ handler: __sighandler_t?) -> Bool {
    unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// A closed standard descriptor would go to the next file opened, the vault, and be written to as standard
  /// output. What stands in cannot be used in the direction that matters, so using it is an error still.
  private static func occupyStandardDescriptors() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      let direction = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY
      _ = open("/dev/null", direction | O_CLOEXEC)  // the lowest free number, which is this one
    }
  }
}
