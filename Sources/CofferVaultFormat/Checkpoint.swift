package import CofferCore

/// Names one state of one vault: how many changes it has seen, and the tag that ends its chain.
package struct Checkpoint: Hashable, Sendable, CustomStringConvertible {
  package let sequence: Int
  package let tailTag: Bytes16

  package init(sequence: Int, tailTag: Bytes16) {
    self.sequence = sequence
    self.tailTag = tailTag
  }

  /// `SEQUENCE-TAG`, with the tag in lower-case hexadecimal.
  package var description: String { "\(sequence)-\(tailTag.hex)" }

  /// Parses a description. `nil`: it is none.
  package init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let sequence = Int(parts[0]), sequence >= 0, let tag = Bytes16(hex: parts[1])
    else {
      return nil
    }
    self.init(sequence: sequence, tailTag: tag)
  }

  /// Whether a vault in this state cannot have been in `earlier` before: it has gone back, or it is another
  /// history with as many changes.
  package func contradicts(_ earlier: Checkpoint) -> Bool {
    sequence < earlier.sequence || (sequence == earlier.sequence && tailTag != earlier.tailTag)
  }
}

/// The watermark's file: the newest checkpoint that this user has seen of a vault, kept outside it.
///
/// Its last 16 bytes are a hash of those before, so that one that a power loss has torn is none.
package enum WatermarkFormat {
  package static let length = hashedLength + 16
  package static let hashedLength = 64
  private static let magic = Array("COFFERW1".utf8)
  private static let context = Array("coffer-watermark".utf8)

  /// What its MAC is of.
  package static func message(_ checkpoint: Checkpoint, vaultID: Bytes16) -> [UInt8] {
    var bytes = context
    vaultID.append(to: &bytes)
    bytes.append(little: UInt64(checkpoint.sequence))
    checkpoint.tailTag.append(to: &bytes)
    return bytes
  }

  /// What its hash is of.
  package static func hashedBytes(_ checkpoint: Checkpoint, mac: [UInt8]) -> [UInt8] {
    var bytes = magic
    bytes.append(little: UInt64(checkpoint.sequence))
    checkpoint.tailTag.append(to: &bytes)
    return bytes + mac
  }

  /// The checkpoint and its MAC, not yet authenticated, from what is hashed. Throws where it is no watermark.
  package static func parse(_ bytes: [UInt8]) throws(SecretError) -> (Checkpoint, mac: [UInt8]) {
    var reader = ByteReader(bytes, part: "the watermark")
    guard try reader.array(magic.count) == magic else { throw reader.failure("begins otherwise") }
    let checkpoint = Checkpoint(sequence: try reader.number(), tailTag: try reader.bytes16())
    let mac = try reader.array(32)
    try reader.expectEnd()
    return (checkpoint, mac)
  }
}
