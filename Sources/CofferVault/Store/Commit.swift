internal import CofferSystem
internal import CofferVaultFormat
internal import CofferCore

extension UnlockedVault {
  /// Appends the changes and makes them count: write, barrier, other slot, barrier. The exclusive lock is
  /// held, and the state is the one on the disk.
  ///
  /// When it throws, what was there before is still there; the changes may be, whole, if the last barrier
  /// was the one that failed.
  func append(_ transaction: VaultTransaction, randomness: any Randomness) throws(SecretError) {
    let file = vault.file
    var frames: [UInt8] = []
    var entries: [(Bytes16, TailEntry)] = []
    var next = state
    var cost = 0
    for change in transaction.changes {
      next.sequence += 1
      let header = change.frameHeader(sequence: next.sequence)
      frames += header.bytes
      let sealedMetadata = keys.sealMetadata(
        change.metadata,
        file: vault.header.fileID,
        offset: next.end,
        header: header,
        previousTag: next.tailTag,
        randomness: randomness)
      frames += sealedMetadata
      next.tailTag = Bytes16(tagOf: sealedMetadata)
      let valueOffset = next.end + Layout.frameHeaderLength + header.sealedMetadataLength
      frames += change.sealedValue
      next.end += header.frameLength
      cost += header.frameLength - header.sealedValueLength
      let entry: TailEntry =
        change.record.map {
          .put(BlockEntry(record: $0, valueOffset: valueOffset, valueLength: change.sealedValue.count))
        } ?? .removed
      entries.append((change.id, entry))
    }
    next.itemCount += transaction.addedItems
    next.deadBytes += transaction.addedDeadBytes
    guard max(next.sequence, next.end, next.deadBytes) < Layout.numberLimit else {
      throw SecretError(.tooLarge, "The vault has been changed too often.", advice: "Copy it to a new one.")
    }

    do throws(FileSystemError) {
      // What an interrupted commit left beyond the end was never acknowledged.
      if try file.status().size > state.end {
        try uninterrupted { () throws(FileSystemError) in try file.truncate(to: state.end) }
      }
    } catch { throw .io(error, "write", path: vault.path) }
    do throws(FileSystemError) {
      try file.writeFully(frames, at: state.end)
    } catch {
      do throws(FileSystemError) {
        try uninterrupted { () throws(FileSystemError) in try file.truncate(to: state.end) }
      } catch {
        // What is left there does not count, and the next writer cuts it off.
      }
      throw .io(error, "write", path: vault.path)
    }
    let slot = 1 - currentSlot
    let page = keys.seal(next, slot: slot, headerHash: vault.headerHash, randomness: randomness)
    do throws(FileSystemError) {
      try uninterrupted { () throws(FileSystemError) in try file.synchronizeData() }
      try file.writeFully(page, at: vault.headerLength + slot * Layout.pageSize)
      try uninterrupted { () throws(FileSystemError) in try file.synchronizeData() }
    } catch {
      isSuspect = true
      throw .io(error, "write", path: vault.path)
    }
    adopt(next, slot: slot, page: page, entries: entries, cost: cost)
  }
}
