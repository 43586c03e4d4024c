internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The leader of the session in which a command runs on an inner terminal.
///
/// The command cannot lead the session itself: the kernel stops a process by a key only if its parent is in the same
/// session. The leader reports stops to the relay, does what the relay asks for, and ends as the command ends.
struct CommandSession: ~Copyable {
  let terminal: Int32
  let channel: SessionChannel
  let isForeground: Bool

  borrowing func run(_ file: ProgramFile, _ arguments: ProgramFile.Vector, launch descriptor: Int32) throws
    -> ProcessEnd
  {
    guard ioctl(terminal, UInt(TIOCSCTTY), 0) == 0 else {
      throw SecretError(.io, "The command's terminal cannot be used: \(FileSystemError(errno)).")
    }
    let signals = try BlockedSignals([
      SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM,
    ])
    let process = try start(file, arguments, try CommandLaunch(inherited: descriptor), mask: signals.previous)
    // For glibc before 2.35. A later one has put the command there already, and the command may have put another group.
    if isForeground, tcgetpgrp(terminal) == getpgrp() { tcsetpgrp(terminal, process) }
    // Only the command keeps its streams open, so that their other ends notice when it closes them.
    redirectToNullDevice(Array(STDIN_FILENO...STDERR_FILENO))
    defer {
      // When the leader ends, the foreground group gets SIGHUP. The processes that the command left running must not.
      tcsetpgrp(terminal, getpgrp())
    }
    return try wait(for: process, signals)
  }

  private borrowing func start(
    _ file: ProgramFile, _ arguments: ProgramFile.Vector, _ launch: consuming CommandLaunch, mask: sigset_t
  ) throws -> pid_t {
    var spawn = Spawn()
    spawn.isGroupLeader = true
    spawn.foregroundTerminal = isForeground ? terminal : nil
    return try spawn.startCommand(arguments[0], mask: mask) { spawn throws(FileSystemError) in
      try file.start(spawn, arguments, launch.environment, onTerminal: terminal)
    }
  }

  private borrowing func wait(for process: pid_t, _ signals: borrowing BlockedSignals) throws -> ProcessEnd {
    var foreground = process
    while true {
      let (arrival, ready) = try signals.wait(orReadable: [channel.descriptor.number])
      if !ready.isEmpty {
        switch channel.receive() {
        case (.signal, let signal)?: kill(process, signal)
        case (.groupSignal, let signal)?: kill(-process, signal)
        case (.resumeInForeground, _)?:
          tcsetpgrp(terminal, foreground)
          kill(-process, SIGCONT)
        case (.resumeInBackground, _)?:
          tcsetpgrp(terminal, getpgrp())
          kill(-process, SIGCONT)
        case (.stopped, _)?, nil:
          // The relay has ended without waiting, so it was killed.
          kill(-process, SIGHUP)
          kill(-process, SIGCONT)
          return .signal(SIGHUP)
        }
      }
      switch arrival?.signal {
      case nil: break
      case SIGCHLD?:
        guard let status = ProcessEnd.changed(process, WUNTRACED) else { break }
        guard status & 0xFF == 0x7F else { return ProcessEnd(waitStatus: status) }
        // When the command continues, the group that is in the foreground now is put there again.
        let group = tcgetpgrp(terminal)
        foreground = group > 0 && group != getpgrp() ? group : process
        channel.send(.stopped, (status >> 8) & 0xFF)
      // The kernel sends SIGHUP only to the leader when the terminal is gone.
      case let signal?: kill(arrival?.isFromKernel == true ? -process : process, signal)
      }
    }
  }
}
