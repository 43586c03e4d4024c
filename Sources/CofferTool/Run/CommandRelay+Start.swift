internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

extension CommandRelay {
  /// Starts the command, or prints why it cannot be started and throws the exit status.
  static func start(_ file: ProgramFile, _ arguments: ProgramFile.Vector, launch descriptor: Int32) throws
    -> CommandRelay
  {
    let launch = try CommandLaunch(inherited: descriptor)
    let patterns = try launch.patterns()
    let streams = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    let outer = OuterTerminal(of: streams)
    let onTerminal = streams.filter { outer?.isSame(as: $0) ?? false }
    let ofTerminal = outer == nil ? [] : [SIGWINCH, SIGTSTP, SIGCONT]
    let signals = try BlockedSignals(BlockedSignals.forwarded + [SIGCHLD] + ofTerminal)
    var spawn = Spawn()
    let (piped, ends) = try addPipes(
      for: streams.filter { $0 != STDIN_FILENO && !onTerminal.contains($0) }, patterns, to: &spawn)
    defer { withExtendedLifetime(ends) {} }

    // Only the command keeps its input open, so that the input's writer notices when the command closes it.
    guard let outer else {
      let process = try spawn.startCommand(arguments[0], mask: signals.previous) { spawn throws(FileSystemError) in
        try file.start(spawn, arguments, launch.environment)
      }
      redirectToNullDevice([STDIN_FILENO])
      return CommandRelay(process: process, signals: signals, outputs: piped, session: nil, ownsTerminal: false)
    }
    spawn.isSessionLeader = true
    let inner = try outer.makeInner()
    let (channel, otherEnd) = try SessionChannel.pair()
    spawn.descriptors += onTerminal.map { ($0, .descriptor(inner.terminal.number)) }
    // The leader inherits these by their own numbers.
    let passed = [descriptor, inner.terminal.number, otherEnd.number]
    spawn.descriptors += passed.map { ($0, .descriptor($0)) }
    let ownsTerminal = outer.isForeground && onTerminal.contains(STDIN_FILENO) && !isPipeline(except: onTerminal)
    let settings = passed.map(String.init) + [ownsTerminal ? "foreground" : "background"]
    let process = try spawn.startCommand(arguments[0], mask: signals.previous) { spawn throws(FileSystemError) in
      try OwnProgram.start(.session, settings, file, arguments, spawn)
    }
    withExtendedLifetime((inner.terminal, otherEnd)) {}
    if !onTerminal.contains(STDIN_FILENO) { redirectToNullDevice([STDIN_FILENO]) }
    let shown = RedactedStream(from: inner.controller, to: outer.descriptor, patterns)
    let session: Session = (outer, shown, SessionChannel(descriptor: channel))
    return CommandRelay(
      process: process, signals: signals, outputs: piped + [shown], session: session,
      ownsTerminal: ownsTerminal)
  }

  /// Whether a standard stream other than `onTerminal` leads to another process, which may use the terminal.
  private static func isPipeline(except onTerminal: [Int32]) -> Bool {
    (STDIN_FILENO...STDERR_FILENO).contains { descriptor in
      var status = stat()
      guard !onTerminal.contains(descriptor), fstat(descriptor, &status) == 0 else { return false }
      return status.st_mode & S_IFMT == S_IFIFO || status.st_mode & S_IFMT == S_IFSOCK
    }
  }

  /// Adds a pipe for each output stream, or one if both are the same file, which keeps the order of the output.
  private static func addPipes(
    for streams: [Int32], _ patterns: RedactionPatterns, to spawn: inout Spawn
  ) throws(SecretError) -> (outputs: [RedactedStream], ends: [Descriptor]) {
    var groups = streams.map { [$0] }
    if streams.count == 2, Output.standard.isSameFile(as: .messages) { groups = [streams] }
    var (outputs, ends): ([RedactedStream], [Descriptor]) = ([], [])
    for group in groups {
      do throws(FileSystemError) {
        let (reading, writing) = try Descriptor.pipe()
        spawn.descriptors += group.map { ($0, .descriptor(writing.number)) }
        ends.append(writing)
        outputs.append(RedactedStream(from: reading, to: group[0], patterns))
      } catch {
        throw SecretError(.io, "A channel for the command's output cannot be created: \(error).")
      }
    }
    return (outputs, ends)
  }
}
