internal import Coffer
internal import FoundationEssentials

extension Date {
  /// The day in UTC.
  var day: String { formatted(.iso8601.year().month().day()) }
}

extension VaultRecipient {
  /// The beginning of the text. It is so long that nobody can make another recipient with the same beginning.
  var shortened: String { "\(description.prefix(28))…" }
}

extension VaultKeySlot {
  /// The part of the id that commands print.
  var shortID: String { String(id.prefix(12)) }

  var kindName: String {
    recipient.map { $0.isPostQuantum ? "hybrid recipient" : "X25519 recipient" } ?? kind?.description ?? "unknown"
  }

  /// The slot in a list.
  var line: String {
    let recipient = recipient.map { "\t\($0.shortened)" } ?? ""
    return "\(shortID)\t\(kindName)\t\(created.day)\t\(label.printable)\(recipient)"
  }

  /// The slot in a message. Escapes the label, which anyone can choose.
  var summary: String { "\(shortID) (\(kindName)\(label.isEmpty ? "" : ", “\(label.printable)”"))" }
}
