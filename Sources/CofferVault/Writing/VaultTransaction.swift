internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// A change that is not committed yet. Its value is sealed. Its frame is not, because the seal depends on the
/// frame's offset.
struct PendingChange {
  let identifier: SecretIdentifier
  let record: Record
  /// Empty for a remove.
  let sealedValue: [UInt8]

  init(_ record: Record, _ identifier: SecretIdentifier, sealedValue: [UInt8] = []) {
    self.identifier = identifier
    self.record = record
    self.sealedValue = sealedValue
  }

  /// The bytes of the frame without its value.
  var replayLength: Int {
    Layout.framePrefixLength + Layout.padded(record.frame.count) + Layout.sealOverhead
  }
}

/// Changes to an unlocked vault that are committed together. The vault is locked for as long as the
/// transaction is open.
final class VaultTransaction: SecretTransaction {
  let vault: VaultSnapshot
  private let now: @Sendable () -> Date
  private(set) var changes: [PendingChange] = []
  /// The records of each changed or purged secret in ascending order: those of the vault, and those of the changes.
  private(set) var records: [Bytes16: [BlockEntry]] = [:]
  /// The secrets of which the commit keeps no earlier version. It rewrites the file if there are any.
  private(set) var purged: Set<Bytes16> = []
  /// The bytes that the tail grows by, without values, and with them.
  private(set) var addedReplayLength = 0
  private(set) var addedLength = 0
  var isOpen = true

  init(_ vault: VaultSnapshot, now: @escaping @Sendable () -> Date) {
    self.vault = vault
    self.now = now
  }

  var isEmpty: Bool { changes.isEmpty && purged.isEmpty }

  private var nextSequence: Int { vault.state.sequence + changes.count + 1 }

  /// Returns the change that made `record`, or `nil` for a record of the vault.
  func change(of record: Record) -> PendingChange? {
    let index = record.sequence - vault.state.sequence - 1
    return index < 0 ? nil : changes[index]
  }

  /// Returns the current version of a secret, or `nil` if there is none.
  private func current(_ identifier: SecretIdentifier, _ id: Bytes16) throws(SecretError) -> BlockEntry? {
    guard let records = records[id] else { return try vault.find(identifier) }
    return records.last?.record.kind == .put ? records.last : nil
  }

  /// Returns every record of a secret in ascending order, with the transaction's own.
  private func allRecords(_ identifier: SecretIdentifier, _ id: Bytes16) throws(SecretError) -> [BlockEntry] {
    if let known = records[id] { return known }
    let found = try vault.records(identifier)
    records[id] = found
    return found
  }

  private func append(_ change: PendingChange) throws(SecretError) {
    let id = change.record.id
    _ = try allRecords(change.identifier, id)
    // The place of the value is not known yet.
    records[id, default: []].append(BlockEntry(record: change.record, valueOffset: 0))
    addedReplayLength += change.replayLength
    addedLength += change.replayLength + change.sealedValue.count
    changes.append(change)
  }

  // MARK: SecretTransaction

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try requireOpen(isOpen)
    guard let entry = try current(identifier, vault.lookupID(identifier)) else { return nil }
    let change = change(of: entry.record)
    let sealed = if let change { change.sealedValue } else { try vault.sealedValue(of: entry) }
    return try vault.keys.openValue(sealed, vault: vault.file.header.vaultID, record: entry.record)
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try requireOpen(isOpen)
    return try current(identifier, vault.lookupID(identifier))?.record.item()
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try requireOpen(isOpen)
    var entries = try vault.allItems().filter { records[$0.record.id] == nil }
    entries += records.values.compactMap(\.last).filter { $0.record.kind == .put }
    return try entries.items(inService: service)
  }

  func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try requireOpen(isOpen)
    try requireStorable(secret, for: identifier, metadata, maximum: Layout.maximumValueLength)
    let existing = try item(identifier)?.metadata
    let merged = SecretMetadata.merged(metadata, over: existing, now: now())
    try append(secret, SecretItem(identifier: identifier, metadata: merged))
  }

  /// Stores a version with its metadata as it is.
  func append(_ secret: borrowing SecretBytes, _ item: SecretItem) throws(SecretError) {
    let id = vault.lookupID(item.identifier)
    let sequence = nextSequence
    let sealed = vault.keys.sealValue(
      secret, .value(vault: vault.file.header.vaultID, lookupID: id, sequence: sequence))
    let record = try acceptable { () throws(SecretError) in
      try Record(id: id, sequence: sequence, sealedValue: sealed, item: item)
    }
    try append(PendingChange(record, item.identifier, sealedValue: sealed))
  }

  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    let id = vault.lookupID(identifier)
    guard try current(identifier, id) != nil else { return false }
    let record = try acceptable { () throws(SecretError) in
      try Record(removing: identifier, id: id, sequence: nextSequence, time: now())
    }
    try append(PendingChange(record, identifier))
    return true
  }

  func purge(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    let id = vault.lookupID(identifier)
    purged.insert(id)
    return try !allRecords(identifier, id).isEmpty
  }
}
