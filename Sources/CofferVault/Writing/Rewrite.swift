internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

extension VaultSnapshot {
  /// What a rewrite changes in addition to the transaction.
  struct RewriteChanges {
    var slots: [KeySlot]
    var keys: DerivedKeys
    /// A new history limit.
    var history: HistoryLimit?
    var merge: VaultMerge?
    /// Whether the file shows no state before its own, which is far above the present one.
    var advances = false

    /// The key slots and keys of `vault` as they are.
    init(of vault: VaultSnapshot) { (slots, keys) = (vault.file.header.slots, vault.keys) }
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
  ) throws(SecretError) -> (Publication, CommitState) {
    let newKeys = changes.keys
    var header = file.header
    header.slots = changes.slots
    var settings = base.settings
    if newKeys === keys {
      if let lineage = settings.lineage { try keys.openLineage(lineage, vault: header.vaultID) }
    } else {
      settings.lineage = try newKeys.lineage(after: keys, settings.lineage, vault: header.vaultID)
    }
    let now = Timestamp.milliseconds(environment.now())
    let time = if let merge = changes.merge { merge.ageTime } else { try Self.ageTime(of: [self], now: now) }
    var sequence = (changes.merge?.lastSequence ?? transaction.state.sequence) + 1
    if changes.advances { sequence += Layout.advance }
    if let limit = changes.history { settings.history = HistorySetting(limit, sequence: sequence) }
    if let merge = changes.merge { (settings.history, settings.taken) = (merge.history.setting, merge.taken) }
    let rule = HistoryRule(settings.history.limit, time: time)
    var (recent, floor) = if let merge = changes.merge { merge.recentChanges } else { try changesBeforeRewrite() }
    if changes.advances { (recent, floor) = ([], sequence) }
    if let merge = changes.merge { settings.join(merge.theirs.base.settings) }
    try settings.noteRemoved(
      from: changes.merge?.unlistedSlots ?? file.header.slots, to: header.slots, isRekey: newKeys !== keys,
      sequence: sequence, time: now)
    var writer = try VaultFileWriter(
      file.storage.draft(), header: header, keys: newKeys,
      index: BaseIndex(sequence: sequence, settings: settings, recent: BaseIndex.Recent(floor: floor)),
      leases: leases().moved())
    if let merge = changes.merge {
      for version in merge.secrets.lazy.flatMap({ rule.kept($0) }) {
        try writer.append(version.record.rewritten(), version.copy.vault, version.entry) { () throws(SecretError) in
          try version.copy.vault.sealedValue(of: version.entry)
        }
      }
    } else {
      // A version beyond the old limit does not come back under a new one.
      let former = HistoryRule(base.settings.history.limit, time: time)
      // The base has its values in the order of the new file; the tail does not.
      var reader = BufferedFileReader(file.storage, end: state.baseEnd)
      try forEachSecret(transaction.tail) { records throws(SecretError) in
        guard let newest = records.last?.record else { return }
        for entry in rule.kept(former.kept(transaction.withoutErased(records, newest.id))) {
          try writer.append(entry.record.rewritten(), self, entry) { () throws(SecretError) in
            try entry.valueOffset < state.baseEnd
              ? reader.array(at: entry.valueOffset, count: entry.record.valueLength)
              : transaction.sealedValue(of: entry)
          }
        }
      }
    }
    let newState = try writer.finish(recent: recent)
    let publication = try writer.draft.publish()
    if case .done = publication { recording(newState) }
    withExtendedLifetime(writer.draft) {}
    return (publication, newState)
  }

  /// The time by which the ages of versions are judged: one change by a clock that is ahead must not make them too old.
  static func ageTime(of vaults: [VaultSnapshot], now: Int64) throws(SecretError) -> Int64 {
    try vaults.map { vault throws(SecretError) in try vault.lastTime() }.compactMap(\.self).reduce(now, min)
  }

  /// The time of the record with the highest sequence, or `nil` if there is none.
  private func lastTime() throws(SecretError) -> Int64? {
    if let last = tail.frames.last { return try tail.entry(last).record.time }
    return try newestInBase()?.time
  }

  /// The changes up to this state that the next root lists, and the sequence from which on the list is complete.
  private func changesBeforeRewrite() throws(SecretError) -> ([Checkpoint], floor: Int) {
    Checkpoint.latest(Layout.maximumRecentChanges / 2, of: try shownChanges(), floor: base.recent.floor)
  }

  /// Every state that the file shows, in ascending order.
  func shownChanges() throws(SecretError) -> [Checkpoint] {
    try recentChanges() + [Checkpoint(sequence: base.sequence, tailTag: state.rootTag)]
      + tail.frames.map { Checkpoint(sequence: $0.head.sequence, tailTag: $0.tag) }
  }
}

extension Checkpoint {
  /// Returns the last `count` of `changes` from `floor` on, and the sequence from which on they are complete.
  static func latest(_ count: Int, of changes: [Checkpoint], floor: Int) -> ([Checkpoint], floor: Int) {
    let changes = changes.filter { $0.sequence >= floor }
    guard changes.count > count else { return (changes, floor) }
    // A merge lists two changes with the same sequence. If one of them is dropped, the list is complete only above it.
    let floor = changes[changes.count - count - 1].sequence + 1
    return (changes.filter { $0.sequence >= floor }, floor)
  }
}

extension VaultFileWriter {
  /// Appends a record with the value of `entry`, which `read` reads: sealed again if the record has another sequence or
  /// the file another master key.
  fileprivate mutating func append(
    _ record: Record, _ vault: VaultSnapshot, _ entry: BlockEntry,
    read: () throws(SecretError) -> [UInt8]
  ) throws(SecretError) {
    if record.kind == .remove { return try append(record, sealedValue: []) }
    var (record, sealed, id) = (record, try read(), vault.file.header.vaultID)
    // A value is authenticated even if its seal is copied: the old file is gone afterwards, so the new one must verify.
    if keys === vault.keys, record.sequence == entry.record.sequence {
      _ = try keys.openValue(sealed, vault: id, record: record)
    } else {
      sealed = try vault.keys.resealed(sealed, vault: id, record: entry.record, under: keys, sequence: record.sequence)
      record = record.with(valueTag: Bytes16(tagOf: sealed))
    }
    try append(record, sealedValue: sealed)
  }
}

extension BaseIndex.Settings {
  /// Lists the slots of `old` that are not in `new`, as removed by the rewrite `sequence` at `time`. Throws `.tooLarge`
  /// if a trace would have to be forgotten.
  fileprivate mutating func noteRemoved(
    from old: [KeySlot], to new: [KeySlot], isRekey: Bool, sequence: Int, time: Int64
  ) throws(SecretError) {
    if isRekey { for index in formerSlots.indices { formerSlots[index].isTrace = false } }
    for slot in old where slot.isKnown && !new.contains(where: { $0.isKnown && $0.id == slot.id }) {
      formerSlots.append(FormerKeySlot(slot, isTrace: !isRekey, sequence: sequence, time: time))
    }
    while formerSlots.count > Layout.maximumFormerKeySlots {
      guard let first = formerSlots.firstIndex(where: { !$0.isTrace }) else {
        throw SecretError(
          .tooLarge,
          "\(Layout.maximumFormerKeySlots) key slots were removed while the master key stayed the same, and no more can be.",
          advice: "Change the master key first.")
      }
      formerSlots.remove(at: first)
    }
  }

  /// Adds the former key slots of another copy of the vault.
  fileprivate mutating func join(_ other: Self) {
    let joined = Dictionary((formerSlots + other.formerSlots).map { ($0.bytes, $0) }) { first, _ in first }
    formerSlots = joined.values.sorted { one, two in
      one.sequence == two.sequence ? one.bytes.lexicographicallyPrecedes(two.bytes) : one.sequence < two.sequence
    }
  }
}
