/// Identifies one state of one vault: the number of changes so far, and the tag of the last change.
package struct Checkpoint: Hashable, Sendable, CustomStringConvertible {
  package let sequence: Int
  package let tailTag: Bytes16

  package init(sequence: Int, tailTag: Bytes16) {
    self.sequence = sequence
    self.tailTag = tailTag
  }

  /// `SEQUENCE-TAG`, with the tag in lower-case hexadecimal.
  package var description: String { "\(sequence)-\(tailTag.hex)" }

  /// Parses a description. Returns `nil` if `text` is malformed.
  package init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let sequence = Int(parts[0]), sequence >= 0, let tag = Bytes16(hex: parts[1])
    else { return nil }
    self.init(sequence: sequence, tailTag: tag)
  }
}
