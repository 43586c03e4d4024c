package import CofferCore

/// The subkeys of a master key, by their numbers in the format.
package enum Subkey: UInt64, CaseIterable, Sendable {
  case headerMAC = 1
  case commitSlots
  case frames
  case values
  case base
  case frameMask
  case knownVaults
  case lineage

  /// The context of the derivation.
  package static let context = "coffer01"
}

/// The kinds of parts that a base has in addition to values.
package enum BasePart: String, Sendable {
  case block
  /// The changes before the root.
  case recent
  case root

  fileprivate var description: String { self == .recent ? "the list of recent changes" : "the \(rawValue)" }
}

/// What a seal is bound to: a subkey, and the associated data that ties the seal to its place.
package struct SealContext: Sendable {
  package let subkey: Subkey
  package let associatedData: [UInt8]
  /// The sealed part, for messages.
  package let part: String

  private init(_ subkey: Subkey, _ part: String, _ associatedData: [UInt8]) {
    (self.subkey, self.part, self.associatedData) = (subkey, part, associatedData)
  }

  /// The MAC stands for the whole header.
  package static func commitSlot(_ index: Int, headerMAC: [UInt8]) -> SealContext {
    SealContext(.commitSlots, "a commit slot", encode("coffer-commit", UInt8(index), headerMAC))
  }

  /// The page of leases. The MAC stands for the whole header.
  package static func leases(headerMAC: [UInt8]) -> SealContext {
    SealContext(.commitSlots, "the page of leases", encode("coffer-leases", headerMAC))
  }

  /// A frame's metadata. `length` is that of the padded metadata.
  package static func metadata(file: Bytes16, offset: Int, length: Int, previousTag: Bytes16) -> SealContext {
    SealContext(.frames, "a frame", encode(file, offset, UInt32(length), previousTag))
  }

  /// A value. The seal is not bound to an offset or a file, so that a rewrite copies it.
  package static func value(vault: Bytes16, lookupID: Bytes16, sequence: Int) -> SealContext {
    SealContext(.values, "a value", encode(vault, lookupID, sequence))
  }

  /// A part of the base at `offset`.
  package static func base(_ part: BasePart, file: Bytes16, offset: Int) -> SealContext {
    SealContext(.base, part.description, encode("coffer-", part.rawValue, file, offset))
  }

  /// The keys of former master keys in the root. The seal is not bound to a file, so that a rewrite copies it.
  package static func lineage(vault: Bytes16) -> SealContext {
    SealContext(.lineage, "the lineage", encode("coffer-lineage", vault))
  }
}

/// The messages of the keyed hashes, and the associated data of a wrapped master key.
package enum HashedMessage {
  /// Hashed with the master key: ties a header to one master key.
  package static func masterCommitment(vault: Bytes16) -> [UInt8] { encode("coffer-master-key", vault) }

  /// Hashed with the secret of a key slot. The hash is the slot's wrapping key and the commitment to that key.
  package static func slotKey(vault: Bytes16, slotHeader: [UInt8]) -> [UInt8] {
    let isForRecipients = KeySlotParameters.Kind(rawValue: slotHeader[0])?.isForRecipients ?? false
    return encode(
      isForRecipients ? "coffer-recipient-slot" : "coffer-key-slot",
      wrappedKey(vault: vault, slotHeader: slotHeader))
  }

  /// The associated data of a wrapped master key.
  package static func wrappedKey(vault: Bytes16, slotHeader: [UInt8]) -> [UInt8] { encode(vault, slotHeader) }

  /// The message whose hash is the lookup id of a secret. The lengths make sure that no two names have the same
  /// message.
  package static func lookupID(_ identifier: SecretIdentifier) -> [UInt8] {
    encode(
      UInt32(identifier.service.utf8.count), identifier.service, UInt32(identifier.account.utf8.count),
      identifier.account)
  }

  /// The message whose hash is the digest of a pin. `fields` are those before the digest.
  package static func pin(fields: [UInt8], tag: Bytes16) -> [UInt8] { encode("coffer-pin", fields, tag) }

  /// The message whose hash is the MAC of a known-vault record. `text` is the end of its file. `fields` are those of
  /// the record.
  package static func knownVault(text: String, fields: [UInt8]) -> [UInt8] {
    encode("coffer-known-vault", UInt32(text.utf8.count), text, fields)
  }
}
