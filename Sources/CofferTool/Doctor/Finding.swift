/// A result of `doctor`.
struct Finding: Encodable {
  /// Only a `bad` finding prevents the use of the backend.
  enum Grade: String { case ok, note, bad }

  let subject: String
  let grade: Grade
  let status: ExitStatus
  let text: String
  var advice: String?

  var isBad: Bool { grade == .bad }

  /// The finding as text, with control characters escaped, which a path may contain.
  var lines: String {
    let mark =
      switch grade {
      case .ok: "ok  "
      case .note: "note"
      case .bad: "BAD "
      }
    let line = "\(mark) \(subject): \(text.printable)\n"
    guard let advice else { return line }
    return line + "     → \(advice.printable)\n"
  }

  private enum CodingKeys: CodingKey { case subject, ok, grade, status, text, advice }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(subject, forKey: .subject)
    try container.encode(!isBad, forKey: .ok)
    try container.encode(grade.rawValue, forKey: .grade)
    try container.encode(status.rawValue, forKey: .status)
    try container.encode(text, forKey: .text)
    try container.encodeIfPresent(advice, forKey: .advice)
  }
}
