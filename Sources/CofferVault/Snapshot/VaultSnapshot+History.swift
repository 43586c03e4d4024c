internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

extension VaultSnapshot {
  /// Returns the records of a secret within the history limit, in ascending order. Throws `.tampered`.
  func history(of identifier: SecretIdentifier, now: Date) throws(SecretError) -> [BlockEntry] {
    HistoryRule(base.settings.history.limit, now: now).kept(try records(identifier))
  }

  /// Returns the removed secrets within the history limit, sorted by identifier. To include the changes of a
  /// transaction, pass its tail, and what it keeps of the records of a secret.
  func removedItems(
    inService service: String?, _ tail: Tail? = nil, now: Date,
    keeping: ([BlockEntry]) -> [BlockEntry] = { $0 }
  ) throws(SecretError) -> [RemovedSecret] {
    let rule = HistoryRule(base.settings.history.limit, now: now)
    var removed: [RemovedSecret] = []
    try forEachSecret(tail) { records throws(SecretError) in
      guard records.last?.isRemoval == true, let newest = rule.kept(keeping(records)).last?.record,
        newest.isInService(service)
      else { return }
      removed.append(RemovedSecret(identifier: try newest.identifier(), removed: Timestamp.date(newest.time)))
    }
    return removed.sorted { $0.identifier < $1.identifier }
  }
}
