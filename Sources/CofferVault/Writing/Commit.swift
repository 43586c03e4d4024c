internal import CofferCore
internal import CofferVaultFormat

extension VaultSnapshot {
  /// Appends the changes and commits them: frames, barrier, one commit slot, barrier, the other commit slot.
  /// The caller holds the exclusive lock and has read the newest state.
  ///
  /// Returns the new state. If it throws, the earlier content is still there. If the last barrier failed, the changes may be there
  /// too, all of them.
  func append(_ transaction: VaultTransaction) throws(SecretError) -> VaultSnapshot {
    var next = state
    var bytes: [UInt8] = []
    var frames: [TailReader.Frame] = []
    for change in transaction.changes {
      let length = Layout.padded(change.metadata.count)
      let metadata = keys.seal(
        Padding.pad(change.metadata),
        .metadata(file: file.header.fileID, offset: next.end, length: length, previousTag: next.tailTag))
      let mask = keys.frameMask(nonce: Array(metadata[..<Layout.nonceLength]))
      bytes += encode(UInt32(length) ^ mask, metadata)
      bytes += change.sealedValue
      let replayLength = Layout.framePrefixLength + metadata.count
      next.sequence = change.record.sequence
      next.tailTag = Bytes16(tagOf: metadata)
      frames.append(
        TailReader.Frame(
          entry: BlockEntry(
            record: change.record, valueOffset: next.end + replayLength,
            valueLength: change.sealedValue.count),
          tag: next.tailTag, replayLength: replayLength))
      next.end += replayLength + change.sealedValue.count
    }
    next.secretCount += transaction.addedSecrets
    guard next.secretCount >= 0 else { throw .wrongSecretCount }
    // An estimate, which must not keep a vault from being changed.
    next.deadBytes = min(next.deadBytes + transaction.addedDeadBytes, Layout.numberLimit - 1)
    let stateBytes = next.bytes
    _ = try acceptable { () throws(SecretError) in
      try CommitState(parsing: stateBytes, headerLength: file.headerLength)
    }

    let storage = file.storage
    // Bytes beyond the end belong to an interrupted commit, which was never acknowledged.
    if try storage.size() > state.end { try storage.truncate(to: state.end) }
    do throws(SecretError) { try storage.write(bytes, at: state.end) } catch {
      do throws(SecretError) { try storage.truncate(to: state.end) } catch {
        // The bytes beyond the end do not count. The next writer removes them.
      }
      throw error
    }
    let (first, second) = (slots.next, 1 - slots.next)
    let pages = (0...1).map { keys.seal(stateBytes, .commitSlot($0, headerHash: file.headerHash)) }
    do throws(SecretError) {
      try storage.synchronizeData()
      try storage.write(pages[first], at: file.headerLength + first * Layout.pageSize)
    } catch {
      file.condition.change { $0.didFailSync = true }
      throw error
    }
    do throws(SecretError) { try storage.synchronizeData() } catch {
      file.condition.change { $0.didFailSync = true }
      throw .unconfirmed(error, path: file.path)
    }
    // The changes are committed. With the second copy no damage to a single slot can lose them. It needs no
    // barrier: the first barrier of the next commit comes before any slot is written again.
    do throws(SecretError) {
      try storage.write(pages[second], at: file.headerLength + second * Layout.pageSize)
    } catch {
      // The next commit writes this slot first.
    }
    return committed(next, pages: pages, frames: frames)
  }
}

extension SecretError {
  /// The error for a commit slot whose number of secrets is not that of the file.
  static var wrongSecretCount: SecretError { .tampered("the number of secrets is wrong") }

  /// The error for a base with more records of one secret than a writer keeps.
  static var tooManyRecords: SecretError { .tampered("the base has too many records of one secret") }

  /// The error for a record whose lookup id is not that of its names.
  static var foreignLookupID: SecretError { .tampered("a record has another name's lookup id") }
}

/// Returns the result of `parse`, by which a reader would accept what is about to be written. Throws
/// `.tooLarge` if it fails: a number has reached a limit of the format.
func acceptable<R>(_ parse: () throws(SecretError) -> R) throws(SecretError) -> R {
  do throws(SecretError) { return try parse() } catch {
    throw SecretError(
      .tooLarge, "The vault has reached a limit of its format.",
      advice: "Nothing was changed. Copy its secrets to a new vault.")
  }
}
