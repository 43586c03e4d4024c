/// The progress of a long operation, on a terminal only, as one line that is overwritten.
struct Progress {
  /// Begins the line, as in "Decrypted 30 of 40" and "Copied 30".
  let verb: String
  private let isShown = Output.messages.isTerminal && !QuietOption.isGiven

  func show(_ done: Int, of total: Int? = nil) {
    guard isShown, total ?? done > 20, done % 10 == 0 else { return }
    Self.write("\r\(verb) \(done)" + (total.map { " of \($0)" } ?? ""))
  }

  func clear() {
    if isShown { Self.write(Self.erasure) }
  }

  private static let erasure = "\r\u{1B}[K"

  private static func write(_ text: String) {
    do { try Output.messages.write(text) } catch {}  // progress is not worth an error
  }

  /// Runs `work`, and shows `text` on a terminal until it ends. `work` must not show a prompt.
  static func during<R: ~Copyable>(_ text: String, _ work: () throws -> R) throws -> R {
    guard Output.messages.isTerminal else { return try work() }
    write(text)
    defer { write(erasure) }
    return try work()
  }
}
