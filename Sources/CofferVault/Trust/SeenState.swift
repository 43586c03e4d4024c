internal import CofferCore
internal import CofferVaultFormat

/// A state of the vault that was seen, and that a later file is compared with.
struct SeenState: Sendable {
  let record: KnownVaultRecord
  /// The bytes that the MAC covers.
  let message: [UInt8]
  let mac: [UInt8]

  /// The state in a record whose file ends with `text`.
  init(_ record: KnownVaultRecord, text: String, mac: [UInt8]) {
    (self.record, self.mac) = (record, mac)
    message = HashedMessage.knownVault(text: text, fields: record.fields)
  }

  /// A state under the master key of `keys`. The text is empty if the state is only in memory.
  init(_ record: KnownVaultRecord, text: String = "", _ keys: DerivedKeys) {
    self.record = record
    message = HashedMessage.knownVault(text: text, fields: record.fields)
    mac = keys.knownVaultMAC(of: message)
  }
  // MARK: Comparing

  /// Whether the file of `vault` has been in this state. `nil`: its list of changes does not go back so far.
  func isShown(by vault: VaultSnapshot) throws(SecretError) -> Bool? {
    try vault.shows(record.checkpoint.sequence) { $0 == record.checkpoint.tailTag }
  }

  /// Throws `.rolledBack` if the file of `vault` has not been in this state. `isNewPlace`: it was seen at another path.
  func requireShown(by vault: VaultSnapshot, path: String, isNewPlace: Bool = false) throws(SecretError) {
    if try isShown(by: vault) != false { return }
    throw .rolledBack(
      path: path, seen: record.checkpoint, found: vault.state.checkpoint, isRecovered: vault.slots.isRecovered,
      isNewPlace: isNewPlace)
  }

  /// Throws unless `vault` is the one that was seen, or a later state of it.
  func requireSuccessor(_ vault: VaultSnapshot, path: String) throws(SecretError) {
    let header = vault.file.header
    guard record.vault == header.vaultID else { throw .unexpectedVault(path: path) }
    if record.masterCommitment == header.masterCommitment {
      guard Sodium.isEqual(vault.keys.knownVaultMAC(of: message), mac) else {
        throw .unverifiable(path: path, "its record is not authentic")
      }
    } else {
      // Only a program that knew the seen master key could seal a lineage with it under another master key.
      guard let lineage = vault.base.settings.lineage,
        try vault.keys.isFormerMAC(mac, of: message, lineage: lineage, vault: header.vaultID)
      else { throw .unexpectedKey(path: path) }
      guard record.policy != .strict || vault.base.sequence > record.checkpoint.sequence else {
        throw .unexpectedKey(path: path)
      }
    }
    if record.policy == .strict { try requireShown(by: vault, path: path) }
  }
}
