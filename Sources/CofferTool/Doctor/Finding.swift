/// A result of `doctor`.
struct Finding: Encodable {
  enum Grade: String, Encodable {
    /// As it should be.
    case ok
    /// Worth knowing: it does not keep the backend from working.
    case note
    /// The backend does not work, or secrets are exposed.
    case bad
  }

  /// What the finding is about, such as `vault` or `key file`.
  let subject: String
  let ok: Bool
  let grade: Grade
  /// The exit status if this is the first bad finding.
  let status: ExitStatus
  /// A clause about the subject, in lower case and without a full stop, or the sentence of an error.
  let text: String
  /// A sentence, or `nil` if there is nothing to do.
  let advice: String?

  /// The finding as text. Escapes control characters, which a path may contain.
  var lines: String {
    let mark = grade == .ok ? "ok  " : grade == .note ? "note" : "BAD "
    let end = advice.map { "     → \($0.printable)\n" } ?? ""
    return "\(mark) \(subject): \(text.printable)\n\(end)"
  }
}
