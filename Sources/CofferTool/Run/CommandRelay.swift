internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// A command that runs as a child with its output redacted, and this process between it and the terminal.
///
/// Without a terminal among the standard streams, the command is in this process's group. With one, it gets an inner
/// terminal, the controlling terminal of a session of its own, and ``CommandSession`` leads that session.
///
/// The command owns this process's terminal as soon as it is in the foreground of its own terminal. Usually that is
/// from the start. If this process is part of a pipeline, has another input or is in the background, it is when the
/// command first reads or changes its terminal. Until then, other programs, such as a pager, may read the terminal.
final class CommandRelay {
  let signals: BlockedSignals
  /// The command, or the leader of its session.
  let process: pid_t
  let outputs: [RedactedStream]
  let session: Session?
  /// When to stop reading the output of a command that has ended. Its background processes may still write.
  var drainEnds: ContinuousClock.Instant?

  /// The parts of a relay with a terminal. `shown` is the output of the inner terminal.
  typealias Session = (outer: OuterTerminal, shown: RedactedStream, channel: SessionChannel)

  init(
    process: pid_t, signals: consuming BlockedSignals, outputs: [RedactedStream], session: Session?,
    ownsTerminal: Bool
  ) {
    self.signals = signals
    (self.process, self.outputs, self.session) = (process, outputs, session)
    (self.ownsTerminal, isChannelOpen, hasSettings) = (ownsTerminal, session != nil, ownsTerminal)
  }

  /// Whether the command is, or will be when it continues, in the foreground of its terminal.
  var ownsTerminal: Bool
  /// Whether the inner terminal has the settings of the outer one.
  var hasSettings: Bool
  var isChannelOpen: Bool
  var isTerminalGone = false
  /// The typed bytes that the inner terminal has not yet taken.
  var typed: [UInt8] = []

  /// Relays until the command has ended and its output is written. Restores the terminal.
  func run() throws -> ProcessEnd {
    defer { session?.outer.restore() }
    if ownsTerminal { session?.outer.makeRaw() }
    var end: ProcessEnd?
    while true {
      if drainEnds != nil, try endDrainedOutputs(), let end { return end }
      if let end, outputs.allSatisfy({ $0.isFinished }) {
        if let failure = outputs.lazy.compactMap(\.failure).first {
          throw SecretError(.io, "The command's output could not be written: \(FileSystemError(failure)).")
        }
        return end
      }
      if let arrival = try exchange() {
        if arrival.signal == SIGCHLD, end == nil {
          end = ProcessEnd.changed(process).map(ProcessEnd.init(waitStatus:))
          if end != nil { drainEnds = .now + .seconds(1) }
        } else {
          handle(arrival, hasEnded: end != nil)
        }
      }
    }
  }

  /// Waits for the next event, and reads or writes once on each descriptor that is ready. Returns a signal, if any.
  private func exchange() throws -> BlockedSignals.Arrival? {
    var requests: [pollfd] = []
    var actions: [() -> Void] = []
    func add(_ descriptor: Int32, _ events: Int32, _ action: @escaping () -> Void) {
      requests.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
      actions.append(action)
    }
    for output in outputs {
      if let source = output.readable { add(source, POLLIN, output.read) }
      if output.wantsToWrite { add(output.destination, POLLOUT, output.write) }
    }
    if isChannelOpen, let channel = session?.channel.descriptor.number { add(channel, POLLIN, receive) }
    if !isTerminalGone, let outer = session?.outer, outer.isRaw, typed.count < 4096, drainEnds == nil {
      add(outer.descriptor, POLLIN, readKeys)
    }
    if !isTerminalGone, let controller = session?.shown.source?.number, !typed.isEmpty {
      add(controller, POLLOUT, writeTyped)
    }
    // Waits until the beginning of a value is to be shown. After the command's end, does not wait for output.
    let isDraining = drainEnds != nil && outputs.contains { $0.readable != nil }
    let drained = outputs.contains { $0.wantsToWrite } ? drainEnds : .now
    let deadline = isDraining ? drained : outputs.compactMap(\.pauseEnds).min()
    let arrival = try signals.wait(for: &requests, until: deadline)
    for (request, action) in zip(requests, actions) where request.revents != 0 { action() }
    for output in outputs { output.showBeginning() }
    return arrival
  }

  /// Whether `events` of poll(2) occur on the descriptor within `milliseconds`.
  static func isReady(_ descriptor: Int32, for events: Int32, milliseconds: Int32 = 0) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    return poll(&request, 1, milliseconds) > 0
  }

  /// Call this after the command has ended. Ends the inner terminal's output if nothing more can be read at once. If
  /// the command's background processes may still write to a pipe: after all that has arrived is written, a copy of
  /// this process goes on in the background, and this process gets `true`.
  private func endDrainedOutputs() throws -> Bool {
    func isDrained(_ output: RedactedStream) -> Bool {
      guard let source = output.readable else { return false }
      return !output.wantsToWrite && !Self.isReady(source, for: POLLIN) || drainEnds.map({ $0 < .now }) == true
    }
    for output in outputs where output === session?.shown && isDrained(output) { output.end() }
    if session?.shown.isFinished == true { session?.outer.restore() }
    let piped = outputs.filter { $0 !== session?.shown && $0.source != nil }
    guard !piped.isEmpty, piped.allSatisfy(isDrained), session?.shown.isFinished != false else { return false }
    let copy = coffer_fork()
    if copy > 0 { return true }
    if copy < 0 {
      piped.forEach { $0.end() }
      return false
    }
    // The copy does not own the terminal, and nobody reads its status.
    (isTerminalGone, isChannelOpen, drainEnds) = (true, false, nil)
    while !outputs.allSatisfy(\.isFinished) {
      if let arrival = try exchange(), arrival.signal != SIGCHLD { handle(arrival, hasEnded: true) }
    }
    _exit(0)
  }

  private func handle(_ arrival: BlockedSignals.Arrival, hasEnded: Bool) {
    switch arrival.signal {
    case SIGCHLD: break
    case SIGWINCH: resize()
    case SIGCONT:
      // Another process stopped and continued this one, and may have changed the terminal.
      if let outer = session?.outer, outer.isRaw, outer.isForeground { outer.makeRaw() }
      resize()
    case let signal where hasEnded:
      // Only output is left to write, and its reader may never take it.
      session?.outer.restore()
      BlockedSignals.deliver(signal)
    case let signal where session != nil:
      session?.channel.send(arrival.isFromKernel ? .groupSignal : .signal, signal)
    case let signal:
      // The kernel sent a signal for a key to the command as well, which is in the same group.
      if !arrival.isFromKernel { kill(process, signal) }
    }
  }
}
