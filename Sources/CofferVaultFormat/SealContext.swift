package import CofferCore

/// The subkeys of a master key, by their numbers in the format.
package enum Subkey: UInt64, CaseIterable, Sendable {
  case headerMAC = 1
  case commitSlots
  case metadata
  case values
  case base
  case lookupIDs
  case knownVaults
  case lineage
  case frameMask

  /// The context of the derivation.
  package static let context = "coffer01"
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

  /// `headerHash` is the BLAKE2b-256 of the header with its padding.
  package static func commitSlot(_ index: Int, headerHash: [UInt8]) -> SealContext {
    SealContext(.commitSlots, "a commit slot", encode("coffer-commit", UInt8(index), headerHash))
  }

  /// A frame's metadata. `length` is that of the padded metadata.
  package static func metadata(
    file: Bytes16, offset: Int, length: Int, previousTag: Bytes16
  ) -> SealContext {
    SealContext(.metadata, "a frame", encode(file, offset, UInt32(length), previousTag))
  }

  /// A value. The seal is not bound to an offset or a file, so that a rewrite copies it.
  package static func value(vault: Bytes16, lookupID: Bytes16, sequence: Int) -> SealContext {
    SealContext(.values, "a value", encode(vault, lookupID, sequence))
  }

  package static func block(_ index: Int, file: Bytes16, offset: Int) -> SealContext {
    SealContext(.base, "a block", encode("coffer-block", file, offset, UInt32(index)))
  }

  package static func root(file: Bytes16, offset: Int) -> SealContext {
    SealContext(.base, "the root", encode("coffer-root", file, offset))
  }

  /// The keys of former master keys in the root. The seal is not bound to a file, so that a rewrite copies it.
  package static func lineage(vault: Bytes16) -> SealContext {
    SealContext(.lineage, "the lineage", encode("coffer-lineage", vault))
  }
}

/// The messages of the keyed hashes, and what binds a wrapped master key.
package enum HashedMessage {
  /// Hashed with the master key: ties a header to one master key.
  package static func masterCommitment(vault: Bytes16) -> [UInt8] { encode("coffer-master-key", vault) }

  /// Hashed with the secret of a key slot to the key that wraps in the slot, and to the commitment to it.
  package static func slotKey(vault: Bytes16, slotHeader: [UInt8]) -> [UInt8] {
    encode("coffer-key-slot", wrappedKey(vault: vault, slotHeader: slotHeader))
  }

  /// The associated data of a wrapped master key.
  package static func wrappedKey(vault: Bytes16, slotHeader: [UInt8]) -> [UInt8] { encode(vault, slotHeader) }

  /// Hashed to the lookup id of a secret. The lengths make sure that no two names have the same message.
  package static func lookupID(_ identifier: SecretIdentifier) -> [UInt8] {
    encode(
      UInt32(identifier.service.utf8.count), identifier.service, UInt32(identifier.account.utf8.count),
      identifier.account)
  }

  /// Hashed to the MAC of a known-vault record about the vault at `path`. `fields` are those of the record.
  package static func knownVault(path: String, fields: [UInt8]) -> [UInt8] {
    encode("coffer-known-vault", UInt32(path.utf8.count), path, fields)
  }
}
