internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// Changes to an unlocked vault that are committed together.
///
/// Each change is sealed at once, and stays in memory until the commit.
final class VaultTransaction: SecretTransaction {
  let vault: VaultSnapshot
  private let now: @Sendable () -> Date
  // The state and the tail of the vault after the changes.
  private(set) var state: CommitState
  private(set) var tail: Tail
  private var lastLookup: (identifier: SecretIdentifier, id: Bytes16)?
  /// For each changed secret, the index of its newest frame in ``tail``.
  private var newest: [Bytes16: Int] = [:]
  /// For each erased secret, the sequence up to which the commit drops its records. If there are any, the commit
  /// rewrites the file.
  private(set) var erased: [Bytes16: Int] = [:]
  /// The present values that were erased, whose fields a value takes over that is stored in the same transaction.
  private var lastErased: [Bytes16: Record] = [:]
  /// The frames and sealed values.
  private var bytes: [UInt8] = []

  init(_ vault: VaultSnapshot, now: @escaping @Sendable () -> Date) {
    (self.vault, self.now, tail, state) = (vault, now, vault.tail, vault.state)
  }

  var isEmpty: Bool { newest.isEmpty && erased.isEmpty }

  func changes(_ identifier: SecretIdentifier) -> Bool {
    let id = lookupID(identifier)
    return newest[id] != nil || erased[id] != nil
  }

  /// What observers are told after the commit: which secrets have changed, or, if a stream cannot keep all their names,
  /// that any secret may have changed.
  func notices() throws(SecretError) -> [SecretChange] {
    if newest.count > ChangeBroadcast.capacity { return [SecretChange(madeNow: nil)] }
    let records = try newest.values.map { index throws(SecretError) in try tail.entry(tail.frames[index]).record }
    let identifiers = try records.map { record throws(SecretError) in try record.identifier() }
    return identifiers.sorted().map { SecretChange(madeNow: $0) }
  }

  /// Returns the lookup id of a secret. Keeps the last one, because the steps of one change ask for the same.
  private func lookupID(_ identifier: SecretIdentifier) -> Bytes16 {
    if let lastLookup, lastLookup.identifier == identifier { return lastLookup.id }
    let id = vault.lookupID(identifier)
    lastLookup = (identifier, id)
    return id
  }

  private func newestRecord(_ identifier: SecretIdentifier) throws(SecretError) -> BlockEntry? {
    let id = lookupID(identifier)
    let entry =
      if let index = newest[id] { try tail.entry(tail.frames[index]) } else {
        try vault.newest(identifier, id: id)
      }
    guard let entry, entry.record.sequence > erased[id] ?? 0 else { return nil }
    return entry
  }

  private func current(_ identifier: SecretIdentifier) throws(SecretError) -> BlockEntry? {
    try newestRecord(identifier).flatMap { $0.isRemoval ? nil : $0 }
  }

  /// Returns those of `records` that are not erased. All are of the secret with the lookup id `id`.
  func withoutErased(_ records: [BlockEntry], _ id: Bytes16) -> [BlockEntry] {
    guard let end = erased[id] else { return records }
    return records.filter { $0.record.sequence > end }
  }

  /// Returns the records of a secret within the history limit, in ascending order.
  private func history(_ identifier: SecretIdentifier) throws(SecretError) -> [BlockEntry] {
    let id = lookupID(identifier)
    let changes = tail.frames[vault.tail.frames.count...].filter { $0.head.id == id }
    let records = try vault.records(identifier, id: id) + changes.map(tail.entry)
    return HistoryRule(vault.base.settings.history.limit, now: now()).kept(withoutErased(records, id))
  }

  private func opened(_ entry: BlockEntry, isInConflict: Bool = false) throws(SecretError) -> Secret {
    try vault.secret(entry, isInConflict: isInConflict, by: sealedValue)
  }

  /// Reads the sealed value of an item of the vault or of the transaction.
  func sealedValue(of item: BlockEntry) throws(SecretError) -> [UInt8] {
    let (start, length) = (item.valueOffset - vault.state.end, item.record.valueLength)
    if start < 0 { return try vault.sealedValue(of: item) }
    return Array(bytes[start..<start + length])
  }

  private func append(_ record: Record, sealedValue: [UInt8] = []) throws(SecretError) {
    // If one of these calls fails, the change is not made. The first throws if an earlier version of the secret is
    // damaged or has another name.
    if newest[record.id] == nil { _ = try vault.records(record.identifier(), id: record.id) }
    let (plaintext, keys) = (record.frame, vault.keys)
    let length = Layout.padded(plaintext.count)
    let metadata = keys.seal(
      Padding.pad(plaintext),
      .metadata(file: vault.file.header.fileID, offset: state.end, length: length, previousTag: state.tailTag))
    let mask = metadata.withUnsafeBytes {
      keys.frameMask(nonce: UnsafeRawBufferPointer(rebasing: $0[..<Layout.nonceLength]))
    }
    let frame = encode(UInt32(length) ^ mask, metadata)
    let tag = Bytes16(tagOf: metadata)
    try acceptable { () throws(SecretError) in
      try tail.add(plaintext, tag: tag, replayLength: frame.count, valueOffset: state.end + frame.count)
    }
    newest[record.id] = tail.frames.count - 1
    bytes += frame
    bytes += sealedValue
    (state.sequence, state.tailTag) = (record.sequence, tag)
    state.end += frame.count + sealedValue.count
  }

  /// The changes as an appendix to the file. `slots` are the commit slots that name ``state``.
  func appendix(slots: [(offset: Int, page: [UInt8])]) -> Appendix {
    Appendix(offset: vault.state.end, bytes: bytes, slots: slots)
  }

  // MARK: SecretAccess

  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    guard let entry = try current(identifier) else { return nil }
    return try opened(entry, isInConflict: vault.isInConflict(entry))
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    guard let entry = try current(identifier) else { return nil }
    return try entry.record.item(isInConflict: vault.isInConflict(entry))
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try vault.items(inService: service, tail)
  }

  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try store(value, for: identifier, metadata: metadata, history: history, after: nil)
  }

  /// `former` is the record of the value that is stored again, if it has another name.
  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History,
    after former: Record?
  ) throws(SecretError) {
    try requireStorable(value, for: identifier, maximum: Layout.maximumValueLength)
    let newest = try newestRecord(identifier)
    let existing = newest.flatMap { $0.isRemoval ? nil : $0 }
    let item = SecretItem(identifier: identifier, metadata: try metadata.applied(to: existing?.metadata, now: now()))
    try append(
      value, item, keepsNothing: history.keepsNothing(after: newest),
      after: former ?? existing?.record ?? lastErased[lookupID(identifier)])
  }

  /// Stores a version with its metadata as it is. `former` is the record of the value before it.
  func append(_ value: SecretBytes, _ item: SecretItem, keepsNothing: Bool, after former: Record?) throws(SecretError) {
    let (id, sequence) = (lookupID(item.identifier), state.sequence + 1)
    let sealed = vault.keys.sealValue(value, .value(vault: vault.file.header.vaultID, lookupID: id, sequence: sequence))
    let record = try acceptable { () throws(SecretError) in
      try Record(id: id, sequence: sequence, sealedValue: sealed, item: item, keepsNothing: keepsNothing, after: former)
    }
    try append(record, sealedValue: sealed)
  }

  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    guard let current = try current(identifier) else { return false }
    let id = lookupID(identifier)
    let record = try acceptable { () throws(SecretError) in
      try Record(
        removing: identifier, id: id, sequence: state.sequence + 1, time: now(),
        keepsNothing: history.keepsNothing(after: current))
    }
    try append(record)
    return true
  }

  func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    SecretVersion.list(try history(identifier))
  }

  func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try history(identifier).first { $0.record.sequence == version && !$0.isRemoval }
      .map { entry throws(SecretError) in try opened(entry) }
  }

  func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try vault.removedItems(inService: service, tail, now: now()) { records in
      records.last.map { withoutErased(records, $0.record.id) } ?? []
    }
  }

  func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    let id = lookupID(identifier)
    let isKnown = newest[id] != nil ? true : try !vault.records(identifier, id: id).isEmpty
    lastErased[id] = try current(identifier)?.record
    // Whoever watches the vault is told of the removal.
    _ = try remove(identifier, history: .unchanged)
    if isKnown { erased[id] = state.sequence }
    return isKnown
  }
}

extension VaultTransaction {
  /// The new name gets all versions with their times, those within the history limit. But if it already has versions,
  /// it gets only the current version, with the present time. A damaged earlier version is left out. Under the old
  /// name, all versions stay as those of a removed secret.
  func move(_ old: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError) {
    guard let secret = try secret(old) else { throw .missing(old) }
    if old == new { return }
    if try item(new) != nil, !replacing { throw .taken(new) }
    let newest = try newestRecord(old)
    let history = try history(old)
    if let newest, history.contains(where: { $0.lost(to: newest) }) { throw .inConflict(old) }
    if try self.history(new).isEmpty {
      for entry in history.dropLast() where entry.record.kind == .put {
        do throws(SecretError) {
          let earlier = SecretItem(identifier: new, metadata: entry.metadata)
          let value = try opened(entry).value
          try append(value, earlier, keepsNothing: entry.record.keepsNothing, after: entry.record)
        } catch  where error.code == .tampered {}
      }
      let item = SecretItem(identifier: new, metadata: secret.metadata)
      try append(secret.value, item, keepsNothing: newest?.keepsNoHistory ?? false, after: newest?.record)
    } else {
      try store(secret.value, for: new, metadata: .replace(secret.metadata), history: .unchanged, after: newest?.record)
    }
    _ = try remove(old)
  }
}

extension SecretError {
  fileprivate static func inConflict(_ identifier: SecretIdentifier) -> SecretError {
    SecretError(
      .conflict, "“\(identifier.account)” was changed on both sides of a merge, and has several values.",
      advice: "Choose one first: secret history, then secret restore or secret set.")
  }
}
