internal import CofferCore
internal import CofferVaultFormat

extension UnlockedVault {
  /// Appends the changes and commits them: frames, barrier, the other commit slot, barrier. The caller holds
  /// the exclusive lock and has read the newest state.
  ///
  /// If it throws, the earlier content is still there. If the last barrier failed, the changes may be there
  /// too, all of them.
  func append(_ transaction: VaultTransaction) throws(SecretError) {
    var next = state
    var frames: [UInt8] = []
    var entries: [(Bytes16, TailEntry)] = []
    for change in transaction.changes {
      let metadata = keys.seal(
        Padding.pad(change.metadata),
        .metadata(
          file: file.header.fileID, offset: next.end, header: change.header.bytes,
          previousTag: next.tailTag))
      frames += change.header.bytes
      frames += metadata
      frames += change.sealedValue
      let entry: TailEntry =
        change.record.map { record in
          .put(
            BlockEntry(
              record: record, valueOffset: next.end + change.header.replayLength,
              valueLength: change.sealedValue.count))
        } ?? .removed
      entries.append((change.id, entry))
      next.sequence = change.header.sequence
      next.tailTag = Bytes16(tagOf: metadata)
      next.end += change.header.frameLength
    }
    next.itemCount += transaction.addedItems
    next.deadBytes += transaction.addedDeadBytes
    guard max(next.sequence, next.end, next.deadBytes) < Layout.numberLimit else {
      throw SecretError(.tooLarge, "The vault has been changed too often.", advice: "Copy it to a new one.")
    }

    let storage = file.storage
    // Bytes beyond the end belong to an interrupted commit, which was never acknowledged.
    if try storage.size() > state.end { try storage.truncate(to: state.end) }
    do throws(SecretError) { try storage.write(frames, at: state.end) } catch {
      do throws(SecretError) { try storage.truncate(to: state.end) } catch {
        // The bytes beyond the end do not count. The next writer removes them.
      }
      throw error
    }
    let slot = 1 - slots.current
    let page = keys.seal(next.bytes, .commitSlot(slot, headerHash: file.headerHash))
    do throws(SecretError) {
      try storage.synchronizeData()
      try storage.write(page, at: file.headerLength + slot * Layout.pageSize)
      try storage.synchronizeData()
    } catch {
      file.condition.didFailSync = true
      throw error
    }
    adopt(next, page: page, entries: entries, replayLength: transaction.addedReplayLength)
  }
}
