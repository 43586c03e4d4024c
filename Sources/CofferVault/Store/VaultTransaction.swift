internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// A change that is not committed yet. Its value is sealed. Its frame is not, because the seal depends on the
/// frame's offset.
struct PendingChange {
  let id: Bytes16
  let identifier: SecretIdentifier
  /// The new record, or `nil` for a remove.
  let record: ItemRecord?
  let sealedValue: [UInt8]
  /// The metadata of the frame without padding.
  let metadata: [UInt8]
  let header: FrameHeader

  init(
    _ identifier: SecretIdentifier, id: Bytes16, sequence: Int, record: ItemRecord? = nil,
    sealedValue: [UInt8] = []
  ) {
    (self.identifier, self.id, self.record, self.sealedValue) = (identifier, id, record, sealedValue)
    metadata = record?.bytes ?? RemoveRecord(id: id, identifier: identifier).bytes
    header = FrameHeader(
      kind: record == nil ? .remove : .put, sequence: sequence,
      metadataLength: Layout.padded(metadata.count),
      valueLength: record == nil ? 0 : sealedValue.count - Layout.sealOverhead)
  }
}

/// Changes to an unlocked vault that are committed together. The vault is locked for as long as the
/// transaction is open.
final class VaultTransaction: SecretTransaction {
  private let vault: UnlockedVault
  private let now: @Sendable () -> Date
  /// The index of the last change of each secret.
  private var latest: [Bytes16: Int] = [:]
  private(set) var changes: [PendingChange] = []
  private(set) var addedItems = 0
  private(set) var addedDeadBytes = 0
  /// The bytes that the tail grows by, without values.
  private(set) var addedReplayLength = 0
  var isOpen = true

  init(_ vault: UnlockedVault, now: @escaping @Sendable () -> Date) {
    self.vault = vault
    self.now = now
  }

  /// The last change of each secret.
  var latestChanges: [Bytes16: PendingChange] { latest.mapValues { changes[$0] } }

  private var nextSequence: Int { vault.state.sequence + changes.count + 1 }

  /// The current record of a secret, and the bytes that it and its value have in the file.
  private func record(_ id: Bytes16) throws(SecretError) -> (record: ItemRecord, size: Int)? {
    if let index = latest[id] {
      return changes[index].record.map { ($0, $0.bytes.count + changes[index].sealedValue.count) }
    }
    return try vault.find(id).map { ($0.record, $0.record.bytes.count + $0.valueLength) }
  }

  private func append(_ change: PendingChange) {
    latest[change.id] = changes.count
    changes.append(change)
    addedReplayLength += change.header.replayLength
  }

  // MARK: SecretTransaction

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try requireOpen(isOpen)
    let id = vault.keys.lookupID(identifier)
    guard let index = latest[id] else { return try vault.find(id).map(vault.value) }
    guard let record = changes[index].record else { return nil }
    return try vault.keys.openValue(
      changes[index].sealedValue, vault: vault.file.header.vaultID, record: record)
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try requireOpen(isOpen)
    return try record(vault.keys.lookupID(identifier))?.record.item()
  }

  func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try requireOpen(isOpen)
    try metadata?.validate()
    if secret.count > Layout.maximumValueLength {
      throw .tooLarge(secret.count, maximum: Layout.maximumValueLength, identifier)
    }
    let id = vault.keys.lookupID(identifier)
    let existing = try record(id)
    let merged = SecretMetadata.merged(metadata, over: try existing?.record.item().metadata, now: now())
    let sequence = nextSequence
    let sealed = vault.keys.sealValue(
      secret, .value(vault: vault.file.header.vaultID, lookupID: id, sequence: sequence))
    let record = ItemRecord(
      id: id, sequence: sequence, valueTag: Bytes16(tagOf: sealed),
      item: SecretItem(identifier: identifier, metadata: merged))
    if let existing { addedDeadBytes += existing.size } else { addedItems += 1 }
    append(
      PendingChange(identifier, id: id, sequence: sequence, record: record, sealedValue: sealed))
  }

  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    let id = vault.keys.lookupID(identifier)
    guard let existing = try record(id) else { return false }
    addedDeadBytes += existing.size
    addedItems -= 1
    append(PendingChange(identifier, id: id, sequence: nextSequence))
    return true
  }
}
