internal import Synchronization

/// How far long work has come, on a terminal only: one line that is written over.
struct Progress {
  private let verb: String
  private let isShown = Output.messages.isTerminal

  init(_ verb: String) { self.verb = verb }

  func show(_ done: Int, of total: Int) {
    guard isShown, total > 20, done % 10 == 0 else { return }
    write("\r\(verb) \(done) of \(total)")
  }

  /// Takes the line away.
  func clear() {
    if isShown { write("\r\u{1B}[K") }
  }

  private func write(_ text: String) { Self.write(text) }

  fileprivate static func write(_ text: String) {
    do { try Output.messages.write(text) } catch {}  // nobody is looking
  }

  /// Does `work`, which cannot say how far it has come: from a second on a terminal shows `text` meanwhile.
  static func during<R: ~Copyable>(_ text: String, _ work: () throws -> R) throws -> R {
    guard Output.messages.isTerminal else { return try work() }
    let line = LateLine()
    let waiting = Task.detached {
      try await Task.sleep(for: .seconds(1))
      line.show(text)
    }
    defer {
      waiting.cancel()
      line.end()
    }
    return try work()
  }
}

/// A line that is shown after a while, unless it is ended before.
private final class LateLine: Sendable {
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
      if state == .shown { Progress.write("\r\u{1B}[K") }
      state = .ended
    }
  }
}
