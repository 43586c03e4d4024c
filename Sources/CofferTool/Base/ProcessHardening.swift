internal import CLinux
internal import CofferLibc

/// Protects this process against core dumps, debuggers and crash handlers, and lifts that for a command that it runs.
struct ProcessHardening: Sendable {
  private let coreLimit: rlimit
  // Two flags instead of an array: the runtime would have to create the array's type at each start.
  private let restoresPipe: Bool
  private let restoresFileSize: Bool

  /// The signals that this process ignores and that were not ignored before. A command must get their default action.
  var restored: [Int32] { (restoresPipe ? [SIGPIPE] : []) + (restoresFileSize ? [SIGXFSZ] : []) }

  /// The hardening of this process, applied at the first use.
  static let applied = ProcessHardening()

  private init() {
    // Opens `/dev/null` for each closed standard descriptor. Otherwise the vault could be opened as standard output and
    // be overwritten. The replacement has the wrong direction, so that using it remains an error.
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      let direction = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY
      _ = open("/dev/null", direction | O_CLOEXEC)  // open returns the lowest free number: `descriptor`
    }
    Self.removeCrashHandlers()

    // Prevents core files, and keeps other processes of this user from attaching. Lowers only the soft limit: a process
    // without privileges could not raise the hard limit again for a command.
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    coreLimit = limit
    Self.setCoreLimit(rlimit(rlim_cur: 0, rlim_max: limit.rlim_max))
    _ = coffer_set_undumpable()

    // A closed pipe and a file size limit are reported as errors instead of ending the process.
    restoresPipe = !Self.isIgnoring(signal(SIGPIPE, SIG_IGN))
    restoresFileSize = !Self.isIgnoring(signal(SIGXFSZ, SIG_IGN))
  }

  /// Restores the settings for a command that replaces this process. Executing it makes the process dumpable again.
  func lift() {
    Self.setCoreLimit(coreLimit)
    for number in restored { signal(number, SIG_DFL) }
  }

  /// Restores the core limit during `body`, which starts a command as a child and gives the signals in ``restored``
  /// their default action.
  func whileLifted<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    Self.setCoreLimit(coreLimit)
    defer { Self.setCoreLimit(rlimit(rlim_cur: 0, rlim_max: coreLimit.rlim_max)) }
    return try body()
  }

  private static func setCoreLimit(_ limit: rlimit) {
    var limit = limit
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
  }

  /// Removes the Swift runtime's handlers for crashes and Ctrl-\. They run another program that prints this process's
  /// memory and registers, which may contain values; and that program hangs if it may not attach.
  private static func removeCrashHandlers() {
    // The runtime handles all of them or none.
    var action = sigaction()
    sigaction(SIGSEGV, nil, &action)
    if unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 0 { return }  // SIG_DFL
    for number in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP] {
      if isIgnoring(signal(number, SIG_DFL)) { signal(number, SIG_IGN) }
    }
  }

  static func isIgnoring(_ handler: __sighandler_t?) -> Bool {
    unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
