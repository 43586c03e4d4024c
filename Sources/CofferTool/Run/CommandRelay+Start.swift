internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import Glibc

extension CommandRelay {
  private static let forwarded = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM]

  /// Starts the command, or prints why it cannot be started and throws the exit status.
  static func start(_ file: ProgramFile, _ arguments: ProgramFile.Vector, launch descriptor: Int32) throws
    -> CommandRelay
  {
    // If SIGCHLD were ignored, which a process inherits, the kernel would discard the command's exit status.
    signal(SIGCHLD, SIG_DFL)
    let launch = try CommandLaunch(inherited: descriptor)
    let streams = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    guard let outer = OuterTerminal(of: streams) else {
      return try startInGroup(file, arguments, launch)
    }
    return try startInSession(file, arguments, launch, descriptor, outer)
  }

  private static func startInGroup(
    _ file: ProgramFile, _ arguments: ProgramFile.Vector, _ launch: borrowing CommandLaunch
  ) throws -> CommandRelay {
    let signals = try BlockedSignals(forwarded + [SIGCHLD])
    var spawn = Spawn()
    spawn.blockedSignals = signals.previous
    spawn.defaultSignals = ProcessHardening.applied.restored
    let (outputs, ends) = try addPipes(for: [STDOUT_FILENO, STDERR_FILENO], launch.patterns, to: &spawn)
    let process = try start(named: arguments) { () throws(SystemCallError) in
      try launch.environment.withVector { variables throws(SystemCallError) in
        spawn.environment = .vector(variables)
        return try file.start(spawn, arguments)
      }
    }
    withExtendedLifetime(ends) {}
    releaseInput()
    return CommandRelay(
      process: process, signals: signals, outputs: outputs, session: nil, ownsTerminal: false)
  }

  private static func startInSession(
    _ file: ProgramFile, _ arguments: ProgramFile.Vector, _ launch: borrowing CommandLaunch,
    _ descriptor: Int32,
    _ outer: OuterTerminal
  ) throws -> CommandRelay {
    let signals = try BlockedSignals(forwarded + [SIGCHLD, SIGWINCH, SIGTSTP, SIGCONT])
    var spawn = Spawn()
    spawn.blockedSignals = signals.previous
    spawn.defaultSignals = ProcessHardening.applied.restored
    spawn.isSessionLeader = true
    let inner = try InnerTerminal(like: outer)
    let (channel, otherEnd) = try SessionChannel.pair()
    let onTerminal = (STDIN_FILENO...STDERR_FILENO).filter { outer.isSame(as: $0) }
    let patterns = launch.patterns
    let (piped, ends) = try addPipes(
      for: [STDOUT_FILENO, STDERR_FILENO].filter { !onTerminal.contains($0) }, patterns, to: &spawn)
    spawn.descriptors += onTerminal.map { ($0, .descriptor(inner.terminal.number)) }
    // The leader inherits these by their own numbers.
    let passed = [descriptor, inner.terminal.number, otherEnd.number]
    spawn.descriptors += passed.map { ($0, .descriptor($0)) }

    let ownsTerminal =
      outer.isForeground && onTerminal.contains(STDIN_FILENO) && !isPipeline(except: onTerminal)
    let process = try start(named: arguments) { () throws(SystemCallError) in
      try OwnProgram.start(
        .session, passed.map(String.init) + [ownsTerminal ? "foreground" : "background"], file, arguments,
        spawn)
    }
    if !onTerminal.contains(STDIN_FILENO) { releaseInput() }
    let shown = RedactedStream(from: inner.controller, to: outer.descriptor, isInteractive: true, patterns)
    withExtendedLifetime((inner.terminal, otherEnd, ends)) {}
    return CommandRelay(
      process: process, signals: signals, outputs: piped + [shown],
      session: Session(outer, shown, SessionChannel(channel)), ownsTerminal: ownsTerminal)
  }

  /// Whether a standard stream other than `onTerminal` leads to another process, which may use the terminal.
  private static func isPipeline(except onTerminal: [Int32]) -> Bool {
    (STDIN_FILENO...STDERR_FILENO).contains { descriptor in
      var status = stat()
      guard !onTerminal.contains(descriptor), fstat(descriptor, &status) == 0 else { return false }
      return status.st_mode & S_IFMT == S_IFIFO || status.st_mode & S_IFMT == S_IFSOCK
    }
  }

  /// Adds a pipe for each of the output streams: a single one if both are the same file, so that the order of the
  /// output is kept.
  private static func addPipes(
    for streams: [Int32], _ patterns: [OutputRedactor.Pattern], to spawn: inout Spawn
  ) throws(SecretError) -> (outputs: [RedactedStream], ends: [Descriptor]) {
    var groups = streams.map { [$0] }
    if streams.count == 2, Output.standard.isSameFile(as: .messages) { groups = [streams] }
    var (outputs, ends): ([RedactedStream], [Descriptor]) = ([], [])
    for group in groups {
      do throws(SystemCallError) {
        let (reading, writing) = try Descriptor.pipe()
        spawn.descriptors += group.map { ($0, .descriptor(writing.number)) }
        ends.append(writing)
        outputs.append(RedactedStream(from: reading, to: group[0], isInteractive: false, patterns))
      } catch {
        throw SecretError(
          .io, "A channel for the command's output cannot be created: \(systemMessage(error.number)).")
      }
    }
    return (outputs, ends)
  }

  private static func start(
    named arguments: ProgramFile.Vector, _ body: () throws(SystemCallError) -> pid_t
  ) throws(ExitCode) -> pid_t {
    do throws(SystemCallError) {
      return try ProcessHardening.applied.whileLifted(body)
    } catch {
      throw ForegroundChild.notStarted(arguments[0].map { String(cString: $0) } ?? "", error.number)
    }
  }

  /// The command alone reads the input: if it does not, the input's writer learns of it.
  private static func releaseInput() {
    let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if null >= 0 {
      dup2(null, STDIN_FILENO)
      close(null)
    }
  }
}
