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

  private func write(_ text: String) {
    do { try Output.messages.write(text) } catch {}  // nobody is looking
  }
}
