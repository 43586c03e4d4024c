internal import Synchronization

/// The progress of a long operation, on a terminal only, as one line that is overwritten.
struct Progress {
  private let verb: String
  private let isShown = Output.messages.isTerminal

  /// `verb` begins the line, as in "Imported 30 of 40".
  init(_ verb: String) { self.verb = verb }

  func show(_ done: Int, of total: Int) {
    guard isShown, total > 20, done % 10 == 0 else { return }
    Self.write("\r\(verb) \(done) of \(total)")
  }

  /// Erases the line.
  func clear() {
    if isShown { Self.write(Self.erasure) }
  }

  fileprivate static let erasure = "\r\u{1B}[K"

  fileprivate static func write(_ text: String) {
    do { try Output.messages.write(text) } catch {}  // progress is not worth an error
  }

  /// Runs `work`, whose progress is unknown. On a terminal, shows `text` if it takes longer than a second.
  static func during<R: ~Copyable>(_ text: String, _ work: () throws -> R) throws -> R {
    guard Output.messages.isTerminal else { return try work() }
    let line = DelayedLine()
    let delay = Task.detached {
      try await Task.sleep(for: .seconds(1))
      line.show(text)
    }
    defer {
      delay.cancel()
      line.end()
    }
    return try work()
  }
}

/// A line that appears after a delay, unless it is ended before.
private final class DelayedLine: Sendable {
  private enum State { case waiting, shown, ended }
  private let state = Mutex(State.waiting)

  func show(_ text: String) {
    state.withLock { state in
      guard state == .waiting else { return }
      Progress.write(text)
      state = .shown
    }
  }

  func end() {
    state.withLock { state in
      if state == .shown { Progress.write(Progress.erasure) }
      state = .ended
    }
  }
}
