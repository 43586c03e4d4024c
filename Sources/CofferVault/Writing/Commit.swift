internal import CofferCore
internal import CofferVaultFormat

extension VaultSnapshot {
  /// Commits the changes: frames, barrier, one commit slot, barrier, the other commit slot.
  /// The caller holds the exclusive lock and has read the newest state.
  ///
  /// Returns the new state. If it throws, the earlier content is still there. If the last barrier failed, the changes may be there
  /// too, all of them.
  func commit(_ transaction: VaultTransaction) throws(SecretError) -> VaultSnapshot {
    let (storage, stateBytes) = (file.storage, transaction.state.bytes)
    _ = try acceptable { () throws(SecretError) in
      try CommitState(parsing: stateBytes, headerLength: file.headerLength)
    }
    try transaction.write()
    let (first, second) = (slots.next, 1 - slots.next)
    let pages = (0...1).map { keys.seal(stateBytes, .commitSlot($0, headerMAC: file.header.mac)) }
    do throws(SecretError) {
      try storage.synchronizeData()
      transaction.mayCount = true
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
    return committed(transaction.state, pages: pages, tail: transaction.tail)
  }
}

extension SecretError {
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
