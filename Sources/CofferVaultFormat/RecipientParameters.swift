package import CofferCore

/// The parameters of a recipient's key slot: a public key, and what the writer of the slot made for it.
package protocol RecipientParameters: KeySlotParameters {
  /// The lengths of the recipient and of the share.
  static var lengths: (recipient: Int, share: Int) { get }
  /// The public key. It stands in clear in the header.
  var recipient: [UInt8] { get }
  /// An ephemeral public key, or the ciphertext of a key encapsulation. Never the same in two slots.
  var share: [UInt8] { get }
  init(recipient: [UInt8], share: [UInt8])
}

extension RecipientParameters {
  package init(parsing reader: inout ByteReader) throws(SecretError) {
    self.init(
      recipient: try reader.array(Self.lengths.recipient), share: try reader.array(Self.lengths.share))
  }

  package var bytes: [UInt8] { recipient + share }
}

/// A recipient of X25519: `age1…`.
package struct X25519Parameters: RecipientParameters {
  package static let type: UInt8 = 3
  package static let lengths = (recipient: 32, share: 32)
  package let recipient: [UInt8]
  package let share: [UInt8]

  package init(recipient: [UInt8], share: [UInt8]) { (self.recipient, self.share) = (recipient, share) }
}

/// A hybrid recipient, which a quantum computer does not open either: `age1pq1…`. X-Wing, that is ML-KEM-768 and X25519.
package struct HybridParameters: RecipientParameters {
  package static let type: UInt8 = 4
  package static let lengths = (recipient: 1216, share: 1120)
  package let recipient: [UInt8]
  package let share: [UInt8]

  package init(recipient: [UInt8], share: [UInt8]) { (self.recipient, self.share) = (recipient, share) }
}
