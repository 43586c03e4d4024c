public import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

extension VaultBackend: VersionedSecretBackend {
  public func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try read { vault throws(SecretError) in
      try SecretVersion.list(vault.history(of: identifier, now: environment.now()))
    }
  }

  public func lookUp(
    _ identifier: SecretIdentifier, version: Int
  ) throws(SecretError) -> SecretBytes? {
    try read { vault throws(SecretError) in
      let records = try vault.history(of: identifier, now: environment.now())
      guard let entry = records.first(where: { $0.record.sequence == version && $0.record.kind == .put })
      else { return nil }
      return try vault.value(of: entry, for: identifier)
    }
  }

  public func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try read { vault throws(SecretError) in
      let rule = HistoryRule(vault.base.settings.history, now: environment.now())
      var removed: [RemovedSecret] = []
      try vault.forEachSecret { records throws(SecretError) in
        guard records.last?.record.kind == .remove, let newest = rule.kept(records).last?.record,
          newest.isInService(service)
        else { return }
        removed.append(
          RemovedSecret(identifier: try newest.identifier(), removed: Timestamp.date(newest.time)))
      }
      return removed.sorted { $0.identifier < $1.identifier }
    }
  }

  @discardableResult
  public func restore(
    _ identifiers: [SecretIdentifier],
    choosing choose: (SecretIdentifier, [SecretVersion]) throws(SecretError) -> Int?
  ) throws(SecretError) -> [SecretIdentifier: SecretVersion] {
    try withSession { session throws(SecretError) in
      try session.transaction(unlocking) { transaction throws(SecretError) in
        let vault = transaction.vault
        return try SecretVersion.restore(identifiers, choosing: choose) { identifier throws(SecretError) in
          try vault.history(of: identifier, now: environment.now())
        } store: { identifier, entry throws(SecretError) in
          let value = try vault.value(of: entry, for: identifier)
          try transaction.store(value, for: identifier, metadata: entry.metadata())
        }
      }
    }
  }

  /// Gives a secret another name in one change, with its earlier versions, unless the new name has versions of its own.
  /// Under the old name they stay as those of a removed secret.
  package func move(
    _ old: SecretIdentifier, to new: SecretIdentifier, replacing: Bool
  ) throws(SecretError) -> SecretMoveOutcome {
    try withSession { session throws(SecretError) in
      try session.transaction(unlocking) { transaction throws(SecretError) in
        if try transaction.item(old) == nil { return .missing }
        if old == new { return .moved }
        if try transaction.item(new) != nil, !replacing { return .taken }
        let vault = transaction.vault
        var versions = try vault.history(of: old, now: environment.now())
        if try !vault.records(new).isEmpty { versions.removeFirst(versions.count - 1) }
        for entry in versions where entry.record.kind == .put {
          let value = try vault.value(of: entry, for: old)
          try transaction.append(value, SecretItem(identifier: new, metadata: entry.metadata()))
        }
        _ = try transaction.remove(old)
        return .moved
      }
    }
  }

  public func historyLimit() throws(SecretError) -> HistoryLimit {
    try read { vault in vault.base.settings.history }
  }

  public func setHistoryLimit(_ limit: HistoryLimit) throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rewrite(unlocking) { _, changes in changes.history = limit }
    }
  }
}

extension VaultSnapshot {
  /// Returns the records of a secret within the history limit, in ascending order. Throws `.tampered`.
  func history(of identifier: SecretIdentifier, now: Date) throws(SecretError) -> [BlockEntry] {
    HistoryRule(base.settings.history, now: now).kept(try records(identifier))
  }
}
