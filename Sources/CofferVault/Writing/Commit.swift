internal import CofferCore
internal import CofferVaultFormat

extension VaultSnapshot {
  /// Publishes the changes of `transaction` behind the end of the file. Returns how that ended, and the new state. If
  /// it throws, the earlier content is still there.
  func commit(_ transaction: VaultTransaction) throws(SecretError) -> (publication: Publication, after: VaultSnapshot) {
    let stateBytes = transaction.state.bytes
    _ = try acceptable { () throws(SecretError) in
      try CommitState(parsing: stateBytes, headerLength: file.headerLength)
    }
    let pages = (0...1).map { keys.seal(stateBytes, .commitSlot($0, headerMAC: file.header.mac)) }
    let appendix = transaction.appendix(
      slots: [slots.next, 1 - slots.next].map { (file.headerLength + $0 * Layout.pageSize, pages[$0]) })
    let (publication, storage) = try file.storage.publish(appendix)
    var newSlots = slots
    newSlots.advance(to: transaction.state, pages: pages)
    return (publication, VaultSnapshot(after: self, newSlots, transaction.tail, in: storage))
  }

  /// Publishes other leases, and no change. Returns how that ended, and the same state.
  func publish(_ leases: LeasePage) throws(SecretError) -> (publication: Publication, after: VaultSnapshot) {
    let page = (file.baseStart - Layout.pageSize, try leases.sealed(by: keys, for: file.header))
    let (publication, storage) = try file.storage.publish(Appendix(offset: state.end, bytes: [], slots: [page]))
    return (publication, VaultSnapshot(after: self, slots, tail, in: storage))
  }
}

/// Checks what is about to be written with `parse`, as a reader would, and returns its result. Throws `.tooLarge` if it
/// fails: a number has reached a limit of the format.
func acceptable<R>(_ parse: () throws(SecretError) -> R) throws(SecretError) -> R {
  do throws(SecretError) { return try parse() } catch {
    throw SecretError(
      .tooLarge, "The vault has reached a limit of its format.",
      advice: "Copy its secrets to a new vault.")
  }
}
