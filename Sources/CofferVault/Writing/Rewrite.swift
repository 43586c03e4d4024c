internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

extension VaultSnapshot {
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

  /// Whether a rewrite is due before `transaction` is appended: otherwise the tail without values, which every reader
  /// reads, would be too long, or the whole tail longer than both `threshold` and the base.
  func isDueForRewrite(before transaction: VaultTransaction, threshold: Int) -> Bool {
    transaction.tail.replayLength > Layout.replayTarget(baseEnd: state.baseEnd)
      || transaction.state.end - state.baseEnd > max(threshold, state.baseEnd - file.baseStart)
  }

  /// Writes the content of the vault with the changes of `transaction` to a new file, and publishes it. Earlier
  /// versions beyond the history limit are dropped. Returns how that ended, and the state of the new file. If it
  /// throws, nothing was changed.
  ///
  /// When the new file counts, calls `recording` with its state. Until it returns, nobody else changes the file.
  func rewrite(
    _ changes: RewriteChanges, _ transaction: VaultTransaction, environment: VaultEnvironment,
    recording: (CommitState) -> Void
  ) throws(SecretError) -> Publication {
    let newKeys = changes.keys
    var header = file.header
    header.slots = changes.slots
    var settings = base.settings
    settings.history = changes.history
    if newKeys === keys {
      if let lineage = settings.lineage { try keys.openLineage(lineage, vault: header.vaultID) }
    } else {
      settings.lineage = try newKeys.lineage(after: keys, settings.lineage, vault: header.vaultID)
    }
    // A version beyond the old limit does not come back under a new one.
    let now = environment.now()
    // One change by a clock that is ahead must not make versions too old.
    let time = try min(Timestamp.milliseconds(now), lastTime() ?? .max)
    let rules = [HistoryRule(base.settings.history, time: time), HistoryRule(changes.history, time: time)]
    let (recent, floor) = try changesBeforeRewrite()
    let sequence = transaction.state.sequence + 1
    try settings.noteRemoved(
      from: file.header.slots, to: header.slots, isRekey: newKeys !== keys, sequence: sequence,
      time: Timestamp.milliseconds(now))
    var writer = try VaultFileWriter(
      file.storage.draft(.replacement), header: header, keys: newKeys,
      index: BaseIndex(sequence: sequence, settings: settings, recent: BaseIndex.Recent(floor: floor)))
    // The base has its values in the order of the new file; the tail does not.
    var reader = BufferedFileReader(file.storage, end: state.baseEnd)
    try forEachSecret(transaction.tail) { records throws(SecretError) in
      guard let newest = records.last?.record else { return }
      let kept = rules.reduce(transaction.withoutErased(records, newest.id)) { $1.kept($0) }
      for entry in kept {
        if entry.isRemoval {
          try writer.append(entry.record.rewritten(), sealedValue: [])
          continue
        }
        var record = try entry.record.rewritten()
        var sealed =
          try entry.valueOffset < state.baseEnd
          ? reader.array(at: entry.valueOffset, count: entry.record.valueLength)
          : transaction.sealedValue(of: entry)
        // A value is authenticated even if its seal is copied: the old file is gone afterwards, so the new one must
        // verify.
        if newKeys === keys {
          _ = try keys.openValue(sealed, vault: header.vaultID, record: record)
        } else {
          sealed = try keys.resealed(sealed, vault: header.vaultID, record: record, under: newKeys)
          record = record.with(valueTag: Bytes16(tagOf: sealed))
        }
        try writer.append(record, sealedValue: sealed)
      }
    }
    let newState = try writer.finish(recent: recent)
    let publication = try writer.draft.publish()
    if case .done = publication { recording(newState) }
    withExtendedLifetime(writer.draft) {}
    return publication
  }

  /// The time of the record with the highest sequence, or `nil` if there is none.
  private func lastTime() throws(SecretError) -> Int64? {
    if let last = tail.frames.last { return try tail.entry(last).record.time }
    return try newestInBase()?.time
  }

  /// The changes up to this state that the next root lists, and the sequence from which on the list is complete.
  private func changesBeforeRewrite() throws(SecretError) -> ([Checkpoint], floor: Int) {
    var changes = try recentChanges() + [Checkpoint(sequence: base.sequence, tailTag: state.rootTag)]
    changes += tail.frames.map { Checkpoint(sequence: $0.head.sequence, tailTag: $0.tag) }
    let count = Layout.maximumRecentChanges / 2
    guard changes.count > count else { return (changes, base.recent.floor) }
    // A merge lists two changes with the same sequence. If one of them is dropped, the list is complete only above it.
    let floor = changes[changes.count - count - 1].sequence + 1
    return (changes.filter { $0.sequence >= floor }, floor)
  }
}
