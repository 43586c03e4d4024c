public import FoundationEssentials

/// A backend that keeps earlier versions of its secrets when they are replaced or removed.
///
/// The methods may be called from any thread. ``SecretBackend`` lists the errors of the store.
public protocol VersionedSecretBackend: TransactionalSecretBackend {
  /// Returns the versions of a secret that the backend still has, newest first, without values.
  ///
  /// The first is the current version, or the removal if the secret was removed. Returns an empty array if
  /// the backend has nothing of the secret. Throws an error of the store.
  func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion]

  /// Returns the value of one version, or `nil` if the backend does not have it. Throws an error of the store.
  func lookUp(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> SecretBytes?

  /// Returns the removed secrets in `service` that can be restored, or of all services if it is `nil`, sorted
  /// by identifier. Throws an error of the store.
  func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret]

  /// Stores earlier versions again as the current ones, with the metadata that they had, in one durable step.
  ///
  /// `choose` gets each of `identifiers` with its versions, newest first, and returns the number of the version
  /// to store. The secret stays as it is if `choose` returns `nil` or a number that is not an earlier version's.
  /// If `choose` throws, nothing is changed. `choose` must not use the backend: other threads and processes
  /// wait for it. Returns the versions that were stored again. Throws what `choose` throws, and an error of the store.
  @discardableResult
  func restore(
    _ identifiers: [SecretIdentifier],
    choosing choose: (SecretIdentifier, [SecretVersion]) throws(SecretError) -> Int?
  ) throws(SecretError) -> [SecretIdentifier: SecretVersion]

  /// Returns the limit beyond which earlier versions are dropped. Throws an error of the store.
  func historyLimit() throws(SecretError) -> HistoryLimit

  /// Changes the limit, and drops the versions beyond it. Throws an error of the store.
  func setHistoryLimit(_ limit: HistoryLimit) throws(SecretError)
}

/// One version of a secret, without its value.
public struct SecretVersion: Hashable, Sendable {
  /// What a version is.
  public enum Kind: Hashable, Sendable {
    /// The secret has this value now.
    case current
    /// The value was replaced or removed.
    case earlier
    /// The secret was removed. There is no value.
    case removal
  }

  /// Identifies the version among those of its secret. A later version has a higher number, and no number is
  /// used again. The numbers of one secret need not be consecutive.
  public let number: Int
  /// What the version is.
  public let kind: Kind
  /// When the version was stored, or the secret removed.
  public let date: Date
  /// The metadata that was stored with the value. Empty for a removal.
  public let metadata: SecretMetadata

  /// Makes a description of a version. For backends.
  public init(number: Int, kind: Kind, date: Date, metadata: SecretMetadata) {
    (self.number, self.kind, self.date, self.metadata) = (number, kind, date, metadata)
  }
}

/// A removed secret of which a backend still has a version.
public struct RemovedSecret: Hashable, Sendable {
  /// The identifier that the secret had.
  public let identifier: SecretIdentifier
  /// When the secret was removed.
  public let removed: Date

  /// Makes a description of a removed secret. For backends.
  public init(identifier: SecretIdentifier, removed: Date) {
    self.identifier = identifier
    self.removed = removed
  }
}

extension VersionedSecretBackend {
  /// Stores an earlier version again as the current one, with the metadata that it had.
  ///
  /// `version` is a number from ``versions(of:)``; `nil` stands for the newest earlier version. Returns
  /// `false` and changes nothing if the backend does not have it. The version that was current becomes an
  /// earlier one. Throws an error of the store.
  @discardableResult
  public func restore(
    _ identifier: SecretIdentifier, version: Int? = nil
  ) throws(SecretError) -> Bool {
    let restored = try restore([identifier]) { _, versions in
      versions.first { $0.kind == .earlier && (version == nil || $0.number == version) }?.number
    }
    return !restored.isEmpty
  }

  /// Stores `secret`, and drops all earlier versions in the same durable step, by ``SecretTransaction/purge(_:)``.
  ///
  /// Throws `.tooLarge`, `.invalidMetadata` or an error of the store. Copies of a vault's file, and blocks of the disk that
  /// the file used before, may still contain the earlier versions.
  public func storeWithoutHistory(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try transaction { transaction throws(SecretError) in
      try transaction.store(secret, for: identifier, metadata: metadata)
      try transaction.purge(identifier)
    }
  }

  /// Removes the secrets that exist, and drops all of their earlier versions, in one durable step.
  ///
  /// Returns `false` and changes nothing if the backend has neither the secret nor a version of it for one of
  /// `identifiers`. A version beyond the limit counts as long as the backend has not dropped it. Throws an error of the
  /// store. Copies of a vault's file, and blocks of the disk that the file used before, may still contain the versions.
  @discardableResult
  public func removeWithHistory(_ identifiers: [SecretIdentifier]) throws(SecretError) -> Bool {
    var isAbsent = false
    do throws(SecretError) {
      try transaction { transaction throws(SecretError) in
        for identifier in identifiers {
          try transaction.remove(identifier)
          if try !transaction.purge(identifier) {
            isAbsent = true
            throw SecretError(.conflict, "The store has nothing of a secret.", identifier: identifier)
          }
        }
      }
      return true
    } catch  where isAbsent {
      return false
    }
  }

  /// Removes the secret if there is one, and drops all of its earlier versions in the same durable step.
  /// Returns `false` if the backend had nothing of the secret. Throws an error of the store.
  @discardableResult
  public func removeWithHistory(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try removeWithHistory([identifier])
  }
}
