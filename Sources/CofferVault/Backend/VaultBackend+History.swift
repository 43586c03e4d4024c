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

  /// Gives a secret another name in one change, with its earlier versions and their times, unless the new name has versions
  /// of its own: then only the current version is stored there, as a change of now. A damaged earlier version is left out.
  /// Under the old name all of them stay as those of a removed secret.
  package func move(
    _ old: SecretIdentifier, to new: SecretIdentifier, replacing: Bool
  ) throws(SecretError) -> SecretMoveOutcome {
    try withSession { session throws(SecretError) in
      try session.transaction(unlocking) { transaction throws(SecretError) in
        guard let item = try transaction.item(old), let value = try transaction.lookUp(old) else {
          return .missing
        }
        if old == new { return .moved }
        if try transaction.item(new) != nil, !replacing { return .taken }
        let vault = transaction.vault
        if try vault.history(of: new, now: environment.now()).isEmpty {
          for entry in try vault.history(of: old, now: environment.now()).dropLast()
          where entry.record.kind == .put {
            do throws(SecretError) {
              let earlier = SecretItem(identifier: new, metadata: try entry.metadata())
              try transaction.append(try vault.value(of: entry, for: old), earlier)
            } catch  where error.code == .tampered {}
          }
          try transaction.append(value, SecretItem(identifier: new, metadata: item.metadata))
        } else {
          try transaction.store(value, for: new, metadata: item.metadata)
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
