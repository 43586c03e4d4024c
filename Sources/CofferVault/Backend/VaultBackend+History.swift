public import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

extension VaultBackend {
  public func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try read { vault throws(SecretError) in
      SecretVersion.list(try vault.history(of: identifier, now: environment.now()))
    }
  }

  public func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try read { vault throws(SecretError) in
      try vault.history(of: identifier, now: environment.now())
        .first { $0.record.sequence == version && !$0.isRemoval }.map(vault.secret)
    }
  }

  public func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try read { vault throws(SecretError) in
      try vault.removedItems(inService: service, now: environment.now())
    }
  }

  /// Returns the secrets of which a version is in conflict with the current one; with `names`, only those among them.
  /// Throws an error of the vault.
  package func conflicts(among names: [SecretIdentifier]? = nil) throws(SecretError) -> [SecretIdentifier] {
    try read { vault throws(SecretError) in
      let rule = HistoryRule(vault.base.settings.history.limit, now: environment.now())
      var found: [SecretIdentifier] = []
      func add(_ records: [BlockEntry]) throws(SecretError) {
        guard let newest = records.last, rule.kept(records).contains(where: { $0.lost(to: newest) }) else { return }
        found.append(try newest.record.identifier())
      }
      if let names {
        for name in names { try add(vault.records(name)) }
      } else {
        try vault.forEachSecret(nil, add)
      }
      return found.sorted()
    }
  }

  /// Returns a keyed hash of each present value, by which two states of the vault can be compared. Only the vault's
  /// keys can compute it, and equal values of two secrets have different ones. Throws an error of the vault.
  package func fingerprints() throws(SecretError) -> [SecretIdentifier: String] {
    try read { vault throws(SecretError) in
      var found: [SecretIdentifier: String] = [:]
      try vault.forEachSecret { records throws(SecretError) in
        guard let newest = records.last, !newest.isRemoval else { return }
        let (name, key) = (try newest.record.identifier(), SecretBytes(encode(newest.record.id)))
        found[name] = try vault.value(of: newest, for: name).fingerprint(under: key).text
      }
      return found
    }
  }

  @discardableResult
  public func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try withTransaction { transaction throws(SecretError) in try transaction.erase(identifier) }
  }

  /// Gives a secret another name, in one change. The new name gets all versions with their times. But if the new name
  /// already has versions, it gets only the current version, with the present time. A damaged earlier version is left
  /// out. Under the old name, all versions stay as those of a removed secret. Throws `.conflict` if the secret has
  /// several values since a merge.
  package func move(
    _ old: SecretIdentifier, to new: SecretIdentifier, replacing: Bool
  ) throws(SecretError) -> SecretMoveOutcome {
    try withSession { session throws(SecretError) in
      try session.transaction(unlocking) { transaction throws(SecretError) in
        guard let secret = try transaction.secret(old) else { return .missing }
        if old == new { return .moved }
        if try transaction.item(new) != nil, !replacing { return .taken }
        let (vault, newest) = (transaction.vault, try transaction.vault.newest(old))
        let history = try vault.history(of: old, now: environment.now())
        if let newest, history.contains(where: { $0.lost(to: newest) }) { throw .inConflict(old) }
        if try vault.history(of: new, now: environment.now()).isEmpty {
          for entry in history.dropLast() where entry.record.kind == .put {
            do throws(SecretError) {
              let earlier = SecretItem(identifier: new, metadata: entry.metadata)
              try transaction.append(
                try vault.value(of: entry, for: old), earlier, keepsNothing: entry.record.keepsNothing,
                after: entry.record)
            } catch  where error.code == .tampered {}
          }
          let item = SecretItem(identifier: new, metadata: secret.metadata)
          try transaction.append(
            secret.value, item, keepsNothing: newest?.keepsNoHistory ?? false, after: newest?.record)
        } else {
          try transaction.store(
            secret.value, for: new, metadata: .replace(secret.metadata), history: .unchanged,
            after: newest?.record)
        }
        _ = try transaction.remove(old)
        return .moved
      }.get()
    }
  }

  /// Returns the limit beyond which earlier versions are dropped. Throws an error of the vault.
  public func historyLimit() throws(SecretError) -> HistoryLimit {
    try read { vault in vault.base.settings.history.limit }
  }

  /// Changes the limit, and writes the vault anew without the versions beyond it. Throws an error of the vault.
  public func setHistoryLimit(_ limit: HistoryLimit) throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rewrite(unlocking) { _, changes in changes.history = limit }
    }
  }
}

extension SecretError {
  fileprivate static func inConflict(_ identifier: SecretIdentifier) -> SecretError {
    SecretError(
      .conflict, "“\(identifier.account)” was changed on both sides of a merge, and has several values.",
      advice: "Nothing was changed. Choose one first: secret history, then secret restore or secret set.")
  }
}
