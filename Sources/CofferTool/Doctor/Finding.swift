internal import CofferConfiguration

/// A result of `doctor`.
struct Finding: Encodable {
  typealias Grade = BackendDiagnosis.Finding.Grade

  let subject: String
  let grade: Grade
  let status: ExitStatus
  let text: String
  let advice: String?

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

  /// A finding about the backend, with advice about this tool.
  init(_ finding: BackendDiagnosis.Finding) {
    self.init(
      subject: finding.subject, grade: finding.grade,
      status: finding.grade == .bad ? finding.code.map { ExitStatus($0) } ?? .internalError : .done,
      text: finding.text, advice: Advice.advice(finding.advice, for: finding.code))
  }

  init(subject: String, grade: Grade, status: ExitStatus, text: String, advice: String? = nil) {
    self.subject = subject
    self.grade = grade
    self.status = status
    self.text = text
    self.advice = advice
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
