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
    let transaction = PassThroughTransaction(self)
    defer { transaction.isOpen = false }
    return try body(transaction)
  }

  /// Removes every secret in `service`, in one step if the backend has transactions. Returns how many there were. Throws an
  /// error of the store.
  @discardableResult
  public func removeAll(inService service: String) throws(SecretError) -> Int {
    try withTransaction { transaction throws(SecretError) in try transaction.removeAll(inService: service) }
  }
}

extension TransactionalSecretBackend {
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

/// The calls of a transaction, made on the backend one by one.
private final class PassThroughTransaction: SecretTransaction {
  private let backend: any SecretBackend
  var isOpen = true

  init(_ backend: any SecretBackend) { self.backend = backend }

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try requireOpen(isOpen)
    return try backend.lookUp(identifier)
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try requireOpen(isOpen)
    return try backend.item(identifier)
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try requireOpen(isOpen)
    return try backend.items(inService: service)
  }

  func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    try requireOpen(isOpen)
    try backend.store(secret, for: identifier, metadata: metadata)
  }

  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    return try backend.remove(identifier)
  }
}
