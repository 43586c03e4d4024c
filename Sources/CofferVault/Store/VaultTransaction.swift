internal import CofferVaultFormat
internal import CofferCore
internal import FoundationEssentials

/// A change that is not committed yet. Its value is sealed already; its frame is not, since that depends on
/// where it will stand.
struct PendingChange {
  let id: Bytes16
  let identifier: SecretIdentifier
  /// The new item, or `nil` for a remove.
  let record: ItemRecord?
  let sealedValue: [UInt8]

  /// What goes into the frame, not yet padded.
  var metadata: [UInt8] {
    record?.bytes ?? RemoveRecord.encode(id: id, identifier: identifier)
  }

  func frameHeader(sequence: Int) -> FrameHeader {
    FrameHeader(
      kind: record == nil ? .remove : .put,
      sequence: sequence,
      metadataLength: Layout.padded(metadata.count),
      valueLength: record == nil ? 0 : sealedValue.count - Layout.sealOverhead
    )
  }
}

/// Changes on top of an open vault, all to be committed at once. The vault's lock is held throughout.
final class VaultTransaction: SecretTransaction {
  private let vault: UnlockedVault
  private let environment: VaultEnvironment
  private var latest: [Bytes16: Int] = [:]
  private(set) var changes: [PendingChange] = []
  /// How many secrets there will be more, and how many bytes will be dead.
  private(set) var addedItems = 0
  private(set) var addedDeadBytes = 0
  var isOpen = true

  init(_ vault: UnlockedVault, environment: VaultEnvironment) {
    self.vault = vault
    self.environment = environment
  }

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try requireOpen(isOpen)
    let id = vault.keys.lookupID(identifier)
    if let index = latest[id] {
      guard let record = changes[index].record else { return nil }
      return try vault.keys.openValue(
        changes[index].sealedValue,
        vault: vault.vault.header.vaultID,
        record: record
      )
    }
    guard let item = try vault.find(id) else { return nil }
    return try vault.value(of: item)
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try requireOpen(isOpen)
    return try record(vault.keys.lookupID(identifier))?.record.item()
  }

  /// The record that counts for `id`, and what it takes in the file.
  private func record(_ id: Bytes16) throws(SecretError) -> (record: ItemRecord, size: Int)? {
    if let index = latest[id] {
      return changes[index].record.map { ($0, $0.bytes.count + changes[index].sealedValue.count) }
    }
    return try vault.find(id).map { ($0.record, $0.record.bytes.count + $0.valueLength) }
  }

  func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    try requireOpen(isOpen)
    try metadata?.validate()
    if secret.count > Layout.maximumValueLength {
      throw .tooLarge(secret.count, maximum: Layout.maximumValueLength, identifier)
    }
    let keys = vault.keys
    let id = keys.lookupID(identifier)
    let existing = try record(id)
    let merged = SecretMetadata.merged(
      metadata,
      over: try existing?.record.item().metadata,
      now: environment.now()
    )
    let sequence = vault.state.sequence + changes.count + 1
    let sealed = keys.sealValue(
      secret,
      vault: vault.vault.header.vaultID,
      id: id,
      sequence: sequence,
      randomness: environment.randomness
    )
    let bytes = ItemRecord.encode(
      id: id,
      sequence: sequence,
      valueTag: Bytes16(tagOf: sealed),
      item: SecretItem(identifier: identifier, metadata: merged)
    )
    var reader = ByteReader(bytes, part: "a new record")
    let record = try ItemRecord(parsing: &reader)
    if let existing { addedDeadBytes += existing.size } else { addedItems += 1 }
    append(PendingChange(id: id, identifier: identifier, record: record, sealedValue: sealed))
  }

  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    let id = vault.keys.lookupID(identifier)
    guard let existing = try record(id) else { return false }
    addedDeadBytes += existing.size
    addedItems -= 1
    append(PendingChange(id: id, identifier: identifier, record: nil, sealedValue: []))
    return true
  }

  private func append(_ change: PendingChange) {
    latest[change.id] = changes.count
    changes.append(change)
  }

  /// The change that counts for each name, where there are several.
  var latestChanges: [Bytes16: PendingChange] { latest.mapValues { changes[$0] } }
}
