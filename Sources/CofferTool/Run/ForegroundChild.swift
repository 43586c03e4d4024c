internal import ArgumentParser
internal import CLinux
internal import CofferSystem
internal import CofferLibc

/// A command that runs as a child in this process's group, as if it had been started directly: keys on the terminal
/// reach it, signals sent to this process are forwarded to it, and this process ends as it ends.
enum ForegroundChild {
  /// The signals that ``run(named:mask:restart:start:)`` receives.
  static let signals = BlockedSignals.forwarded + [SIGTSTP, SIGCONT, SIGCHLD]

  /// Starts the command with `start`, in this process's environment, and forwards signals until it has ended. Starts it
  /// again as `restart` says. `mask` has the signals that the command blocks.
  static func run(
    named name: String, mask: sigset_t, restart: CommandRestart? = nil,
    start: (inout Spawn) throws(FileSystemError) -> pid_t
  ) throws -> ProcessEnd {
    let signals = try BlockedSignals(Self.signals)
    var spawn = Spawn()
    var process = try spawn.startCommand(name, mask: mask, start)
    while true {
      var changes = restart?.requests ?? []
      let arrival = try signals.wait(for: &changes, until: restart?.deadline)
      if arrival?.signal == SIGCHLD, let status = ProcessEnd.changed(process, WUNTRACED) {
        if status & 0xFF == 0x7F {
          // A key does not stop this process at once, because the command may first restore the terminal, or may not
          // stop. With SIGTSTP, the kernel stops only what a shell can continue. If SIGCONT is pending, the shell has
          // already continued both.
          var pending = sigset_t()
          sigpending(&pending)
          if sigismember(&pending, SIGCONT) == 0 { BlockedSignals.deliver(SIGTSTP) }
        } else if restart?.isDue() == true {
          process = try spawn.startCommand(name, mask: mask, start)
        } else {
          return ProcessEnd(waitStatus: status)
        }
      } else if let arrival, arrival.signal != SIGCHLD {
        restart?.observe(arrival)
        // The command has already received what the kernel sent for a key, and a stop that it sent to its own group.
        let isOwnStop = arrival.signal == SIGTSTP && arrival.sender == process
        if !arrival.isFromKernel && !isOwnStop { kill(process, arrival.signal) }
      }
      restart?.proceed(with: process, hasChanged: changes.contains { $0.revents != 0 })
    }
  }

  /// Prints why a command was not started, and returns the exit status: 127 if it does not exist, else 126.
  static func notStarted(_ name: String, _ code: Int32) -> ExitCode {
    note("secret: The command “\(name)” could not be started: \(FileSystemError(code)).")
    return ExitCode(code == ENOENT ? 127 : 126)
  }

  /// Ends this process by the same signal as the command, or returns the exit code to throw.
  static func end(as end: ProcessEnd) -> any Error {
    switch end {
    case .status(let status): return ExitCode(status)
    case .signal(let number):
      signal(number, SIG_DFL)
      BlockedSignals.deliver(number)
      return ExitCode(128 + number)
    }
  }
}

extension Spawn {
  /// Starts the command `name` with `start`: with the signals of `mask` blocked, and with the settings that this
  /// process had before ``ProcessHardening``. The caller has blocked SIGCHLD.
  ///
  /// If the command cannot be started, prints the reason and throws the exit status 127 or 126.
  mutating func startCommand(
    _ name: UnsafePointer<CChar>?, mask: sigset_t, _ start: (inout Spawn) throws(FileSystemError) -> pid_t
  ) throws(ExitCode) -> pid_t {
    // If SIGCHLD were ignored, which a process inherits, the kernel would discard the command's exit status.
    signal(SIGCHLD, SIG_DFL)
    blockedSignals = mask
    defaultSignals = ProcessHardening.applied.restored
    do throws(FileSystemError) {
      return try ProcessHardening.applied.whileLifted { () throws(FileSystemError) in try start(&self) }
    } catch {
      throw ForegroundChild.notStarted(name.map { String(cString: $0) } ?? "", error.number)
    }
  }
}
