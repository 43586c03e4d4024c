internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// A new file that is in the vault's place, and not yet known to be there after a power loss.
///
/// The file is locked for as long as this value lives.
struct Replacement {
  let writer: VaultFileWriter
  let state: CommitState
}

extension VaultSnapshot {
  /// An item of the old file or of the transaction, and its position in the new file.
  private struct Source {
    let position: VersionPosition
    let entry: BlockEntry
  }

  /// What a rewrite changes in addition to the transaction.
  struct RewriteChanges {
    var slots: [KeySlot]
    var keys: DerivedKeys
    var history: HistoryLimit

    /// The key slots, keys and history limit of `vault` as they are.
    init(of vault: VaultSnapshot) {
      (slots, keys, history) = (vault.file.header.slots, vault.keys, vault.base.settings.history)
    }
  }

  /// Whether a rewrite is due before `transaction` is appended.
  ///
  /// Every reader reads the whole tail without its values, so that part is limited to `threshold` bytes or a
  /// 32nd of the base, whichever is larger. Dead bytes are limited to `threshold` or half of the file.
  func isDueForRewrite(before transaction: VaultTransaction, threshold: Int) -> Bool {
    let baseLength = state.baseEnd - file.headerLength
    return replayLength + transaction.addedReplayLength > max(threshold, baseLength / 32)
      || state.deadBytes + transaction.addedDeadBytes > max(threshold, state.end / 2)
  }

  /// Writes the content of the vault with the changes of `transaction` to a new file, and moves it into
  /// place. Earlier versions beyond the history limit are dropped. The caller holds the exclusive lock.
  ///
  /// If it throws, nothing was changed. The caller must finish the replacement before it acknowledges
  /// anything.
  func rewrite(
    _ changes: RewriteChanges, transaction: VaultTransaction? = nil, environment: VaultEnvironment
  ) throws(SecretError) -> Replacement {
    let newKeys = changes.keys
    var header = file.header
    header.slots = changes.slots
    var settings = base.settings
    settings.history = changes.history
    if newKeys === keys {
      if let lineage = settings.lineage { try keys.authenticate(lineage: lineage, vault: header.vaultID) }
    } else {
      settings.lineage = try newKeys.lineage(after: keys, settings.lineage, vault: header.vaultID)
    }
    // A version that the old limit has dropped does not come back under a new one.
    let now = environment.now()
    let rules = [HistoryRule(base.settings.history, now: now), HistoryRule(changes.history, now: now)]
    let sources = try sources(transaction, newKeys, rules)
    file.location.removeAbandoned(of: environment.user)
    var writer = try VaultFileWriter(
      at: file.location, header: header, keys: newKeys,
      sequence: state.sequence + (transaction?.changes.count ?? 0) + 1, settings: settings)
    do throws(SecretError) {
      // The base has its values in the order of the new file; the tail does not.
      var reader = BufferedFileReader(file.storage, end: state.baseEnd)
      for source in sources {
        let entry = source.entry
        let sealed =
          if let change = transaction?.change(of: entry.record) {
            change.sealedValue
          } else if entry.valueOffset < state.baseEnd {
            try reader.array(at: entry.valueOffset, count: entry.valueLength)
          } else {
            try sealedValue(of: entry)
          }
        try copy(source, sealed, under: newKeys, to: &writer)
      }
      try writer.admitReaders(of: file)
      let state = try writer.replace(existing: true)
      return Replacement(writer: writer, state: state)
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// The items of the new file in its order.
  private func sources(
    _ transaction: VaultTransaction?, _ newKeys: DerivedKeys, _ rules: [HistoryRule]
  ) throws(SecretError) -> [Source] {
    var sources: [Source] = []
    func add(_ records: [BlockEntry]) throws(SecretError) {
      guard let newest = records.last?.record else { return }
      let isPurged = transaction?.purged.contains(newest.id) ?? false
      let kept = (isPurged ? [HistoryRule(.none, now: .distantPast)] : rules).reduce(records) { $1.kept($0) }
      let id = newKeys === keys ? newest.id : newKeys.lookupID(try newest.identifier())
      for entry in kept {
        sources.append(
          Source(position: VersionPosition(id: id, sequence: entry.record.sequence), entry: entry))
      }
    }
    var changed = transaction?.records ?? [:]
    var secrets = 0
    try forEachSecret { records throws(SecretError) in
      guard let newest = records.last?.record else { return }
      if newest.kind == .put { secrets += 1 }
      try add(changed.removeValue(forKey: newest.id) ?? records)
    }
    guard secrets == state.secretCount else { throw .wrongSecretCount }
    for records in changed.values { try add(records) }
    return sources.sorted { $0.position < $1.position }
  }

  /// Copies an item to the new file, and seals its value again if the keys differ.
  ///
  /// A value is authenticated even if its seal is copied, and texts are decoded: the old file is gone afterwards, so
  /// the new one must verify.
  private func copy(
    _ source: Source, _ sealed: [UInt8], under newKeys: DerivedKeys, to writer: inout VaultFileWriter
  ) throws(SecretError) {
    let (record, vault, id) = (source.entry.record, file.header.vaultID, source.position.id)
    _ = try record.item()
    guard record.kind == .put else {
      return try writer.append(record.with(id: id, valueTag: .zero), sealedValue: [])
    }
    let value = try keys.openValue(sealed, vault: vault, record: record)
    if newKeys === keys { return try writer.append(record, sealedValue: sealed) }
    let resealed = newKeys.sealValue(
      value, .value(vault: vault, lookupID: id, sequence: record.sequence))
    try writer.append(
      record.with(id: id, valueTag: Bytes16(tagOf: resealed)), sealedValue: resealed)
  }
}
