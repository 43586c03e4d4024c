internal import CofferCore

/// The fields that a key slot has between its label and its commitment, for each of the four types of slots.
package enum KeySlotParameters: Sendable {
  /// The slot of a passphrase, which Argon2id stretches with `memory` KiB. The salt has 16 bytes.
  case passphrase(passes: UInt32, memory: UInt32, salt: [UInt8])
  /// The slot of a key of 32 bytes. The salt has 16 bytes.
  case key(salt: [UInt8])
  /// The slot of an X25519 recipient, `age1…`: `share` is an ephemeral public key, and both have 32 bytes. Or the slot
  /// of a hybrid recipient, `age1pq1…` (X-Wing: ML-KEM-768 and X25519), which a quantum computer cannot open: `share`
  /// is the ciphertext of the key encapsulation.
  case recipient(ArraySlice<UInt8>, share: ArraySlice<UInt8>, isHybrid: Bool)

  /// The bytes of a hybrid recipient and of its share.
  package static let hybridLengths = (recipient: 1216, share: 1120)

  /// The numbers of the types in the file.
  package enum Kind: UInt8 {
    case passphrase = 1
    case key, x25519, hybrid

    package var isForRecipients: Bool { self == .x25519 || self == .hybrid }
  }

  /// Reads the parameters of a slot. Throws `.tampered`.
  init(_ kind: Kind, parsing reader: inout ByteReader) throws(SecretError) {
    switch kind {
    case .passphrase:
      let (passes, memory) = (try reader.u32(), try reader.u32())
      guard passes >= 1, memory >= 8 else { throw reader.failure("has a cost below the minimum") }
      self = .passphrase(passes: passes, memory: memory, salt: try reader.array(16))
    case .key: self = .key(salt: try reader.array(16))
    case .x25519, .hybrid:
      let lengths = kind == .hybrid ? Self.hybridLengths : (recipient: 32, share: 32)
      let recipient = try reader.slice(lengths.recipient)
      self = .recipient(recipient, share: try reader.slice(lengths.share), isHybrid: kind == .hybrid)
    }
  }

  package var kind: Kind {
    switch self {
    case .passphrase: .passphrase
    case .key: .key
    case .recipient(_, _, let isHybrid): isHybrid ? .hybrid : .x25519
    }
  }

  package var bytes: [UInt8] {
    switch self {
    case .passphrase(let passes, let memory, let salt): encode(passes, memory, salt)
    case .key(let salt): salt
    case .recipient(let recipient, let share, _): Array(recipient + share)
    }
  }

  /// The public key of a recipient. It stands in clear in the header.
  package var recipient: ArraySlice<UInt8>? {
    if case .recipient(let recipient, _, _) = self { recipient } else { nil }
  }
}
