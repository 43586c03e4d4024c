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
        .first { $0.record.sequence == version && !$0.isRemoval }
        .map { entry throws(SecretError) in try vault.secret(entry, isInConflict: false, by: vault.sealedValue) }
    }
  }

  public func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try read { vault throws(SecretError) in
      try vault.removedItems(inService: service, now: environment.now())
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
