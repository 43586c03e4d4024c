extension SecretBackend {
  /// Whether ``withTransaction(_:)`` is atomic: the backend is a ``TransactionalSecretBackend``.
  public var hasTransactions: Bool { self is any TransactionalSecretBackend }

  /// Runs `body` in a transaction if the backend has transactions, and on the backend itself otherwise.
  ///
  /// With a ``TransactionalSecretBackend`` this is its `transaction`. With any other backend it is not atomic: each call
  /// inside takes effect at once, other programs see the steps between, and what was changed before `body` throws stays
  /// changed. To lose nothing in either case, read and check first, store before you remove, and store last what you can
  /// do without.
  ///
  /// Inside `body`, use only the transaction, which throws `.conflict` once `body` has returned. Throws what `body` throws,
  /// and an error of the store.
  public func withTransaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    if let backend = self as? any TransactionalSecretBackend { return try backend.transaction(body) }
    var isOpen = true
    defer { isOpen = false }
    return try body(CheckedAccess(self) { _ throws(SecretError) in try requireOpen(isOpen) })
  }

  /// Removes every secret in `service`, in one step if the backend has transactions. Returns how many there were. Throws an
  /// error of the store.
  @discardableResult
  public func removeAll(inService service: String) throws(SecretError) -> Int {
    try withTransaction { transaction throws(SecretError) in try transaction.removeAll(inService: service) }
  }
}

extension TransactionalSecretBackend {
  /// Removes the secret in a transaction. Returns `false` if there is no such secret. Throws an error of the store.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try transaction { transaction throws(SecretError) in try transaction.remove(identifier) }
  }

  /// Runs `body` as the method with typed errors does, and throws every error of `body`. Nothing is changed then.
  public func transaction<R>(_ body: (any SecretTransaction) throws -> R) throws -> R {
    var foreign: (any Error)?
    do throws(SecretError) {
      return try transaction { transaction throws(SecretError) in
        do {
          return try body(transaction)
        } catch let error as SecretError {
          throw error
        } catch {
          foreign = error
          throw SecretError(.conflict, "The transaction was cancelled by its own code.")
        }
      }
    } catch {
      throw foreign ?? error
    }
  }
}

/// The calls of a transaction, made one by one on a backend or on another transaction, each after a check.
package struct CheckedAccess: SecretTransaction {
  /// What is called.
  package enum Call { case lookUp, items, store, remove }

  private let base: any SecretAccess
  private let check: (Call) throws(SecretError) -> Void

  package init(_ base: any SecretAccess, _ check: @escaping (Call) throws(SecretError) -> Void) {
    (self.base, self.check) = (base, check)
  }

  package func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try check(.lookUp)
    return try base.lookUp(identifier)
  }

  package func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try check(.items)
    return try base.item(identifier)
  }

  package func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try check(.items)
    return try base.items(inService: service)
  }

  package func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try check(.store)
    try base.store(secret, for: identifier, metadata: metadata)
  }

  package func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try check(.remove)
    return try base.remove(identifier)
  }
}
