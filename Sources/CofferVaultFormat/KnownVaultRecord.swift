package import CofferCore

/// What a user has seen of the vault at one path: which vault it is, under which master key, and in which state. Or,
/// with the policy ``Policy/key``, what a user has seen of one vault at any path: its master key and its newest state.
package struct KnownVaultRecord: Hashable, Sendable {
  package enum Policy: UInt8, Sendable {
    /// The vault's state may not go back.
    case strict = 0
    /// Only the vault's identity and its master key are checked. For vaults in version control.
    case versioned = 1
    /// The record is of a vault, not of a path. It is compared only with the master key.
    case key = 2
  }
  package var policy: Policy
  /// Whether only the record of the path counts for this vault, for example a backup. Its key says nothing elsewhere.
  package var isDetached: Bool
  package var vault: Bytes16
  /// The master key commitment of the vault's header.
  package var masterCommitment: [UInt8]
  package var checkpoint: Checkpoint

  package init(
    policy: Policy, isDetached: Bool = false, vault: Bytes16, masterCommitment: [UInt8],
    checkpoint: Checkpoint
  ) {
    (self.policy, self.isDetached, self.vault) = (policy, isDetached, vault)
    (self.masterCommitment, self.checkpoint) = (masterCommitment, checkpoint)
  }

  /// The length of one of the two slots that a record's file begins with.
  package static let slotLength = 512
  /// The length of the hashed part of a slot. The last 16 bytes of the slot are the hash.
  package static let hashedLength = slotLength - 16
  private static let magic = Array("COFFERK".utf8)
  private static let version: UInt8 = 1

  /// The bytes that the MAC covers, in addition to the path.
  package var fields: [UInt8] {
    encode(
      policy.rawValue, UInt8(isDetached ? 1 : 0), zeros(6), vault, masterCommitment, checkpoint.sequence,
      checkpoint.tailTag)
  }

  /// The part of a slot that the hash covers.
  package func hashedBytes(mac: [UInt8]) -> [UInt8] {
    let bytes = encode(Self.magic, Self.version, fields, mac)
    return encode(bytes, zeros(Self.hashedLength - bytes.count))
  }

  /// Parses the part of a slot that the hash covers. The caller must check the hash and the MAC. Throws `.tampered`,
  /// and `.unsupportedVersion` if a later version of Coffer wrote the record.
  package static func parse(_ bytes: [UInt8]) throws(SecretError) -> (KnownVaultRecord, mac: [UInt8]) {
    var reader = ByteReader(bytes, part: "a known-vault record")
    guard try reader.array(magic.count) == magic else { throw reader.failure("has another magic number") }
    guard try reader.u8() == version else {
      throw SecretError(
        .unsupportedVersion, "A later version of Coffer wrote the record.",
        advice: "Update Coffer to use the vault here.")
    }
    guard let policy = Policy(rawValue: try reader.u8()) else { throw reader.failure("has an unknown policy") }
    let scope = try reader.u8()
    guard scope <= 1 else { throw reader.failure("has an unknown scope") }
    try reader.zeros(6)
    let record = KnownVaultRecord(
      policy: policy, isDetached: scope == 1, vault: try reader.bytes16(),
      masterCommitment: try reader.array(32),
      checkpoint: try reader.checkpoint())
    guard policy != .key || !record.isDetached else { throw reader.failure("is of a vault, and has a scope") }
    let mac = try reader.array(32)
    try reader.zeros(hashedLength - reader.position)
    try reader.expectEnd()
    return (record, mac)
  }
}
