internal import ArgumentParser
internal import CLinux
internal import Coffer
internal import CofferSystem
internal import Glibc

/// A command that runs as a child in this process's group, as if it had been started directly: keys on the
/// terminal reach it, signals sent to this process are forwarded to it, and this process ends as it ends.
struct ForegroundChild: ~Copyable {
  private let process: pid_t
  private let signals: BlockedSignals

  /// Starts the command with `start`, in this process's environment.
  ///
  /// - Parameters:
  ///   - name: The command's name for messages.
  ///   - mask: The signals that the command blocks. Default: the ones that this thread blocks.
  ///
  /// If the command cannot be started, prints the reason and throws the exit status 127 or 126.
  init(
    named name: String,
    mask: sigset_t? = nil,
    start: (Spawn) throws(SystemCallError) -> pid_t
  ) throws {
    // If SIGCHLD were ignored, which a process inherits, the kernel would discard the command's exit status.
    signal(SIGCHLD, SIG_DFL)
    let signals = try BlockedSignals([
      SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD,
    ])
    var spawn = Spawn()
    spawn.blockedSignals = mask ?? signals.previous
    spawn.defaultSignals = ProcessHardening.applied.restored
    do throws(SystemCallError) {
      process = try ProcessHardening.applied.whileLifted { () throws(SystemCallError) in try start(spawn) }
    } catch {
      throw Self.notStarted(name, error.number)
    }
    self.signals = signals
  }

  /// Prints why the command `name` was not started, and returns the exit status: 127 if it does not exist,
  /// else 126.
  static func notStarted(_ name: String, _ code: Int32) -> ExitCode {
    note("secret: The command “\(name)” could not be started: \(systemMessage(code)).")
    return ExitCode(code == ENOENT ? 127 : 126)
  }

  /// Forwards signals until the command has ended.
  consuming func wait() throws -> ProcessEnd {
    while true {
      let (arrival, _) = try signals.wait(orReadable: [])
      switch arrival?.signal {
      case nil: break
      case SIGCHLD?:
        if let status = ProcessEnd.changed(process) { return ProcessEnd(waitStatus: status) }
      case let signal?:
        if arrival?.isFromKernel != true { kill(process, signal) }
      }
    }
  }

  /// Ends this process by the same signal as the command, or returns the exit code to throw.
  static func end(as end: ProcessEnd) -> any Error {
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
