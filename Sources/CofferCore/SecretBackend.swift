/// A place that keeps secrets: a keyring, a vault file, memory.
///
/// Calls are synchronous and may wait, each up to the backend's own deadline; a keyring may wait for a
/// person. From `async` code use the overloads of the same names, which wait off the cooperative thread
/// pool. Every method may be called from any thread.
///
/// `CofferTesting` has the suite that every backend passes.
public protocol SecretBackend: Sendable {
  /// The secret's bytes, exactly as stored, or `nil` where there is none.
  ///
  /// `nil` means that the store was read and has no such secret. Anything else that keeps the value from
  /// the caller throws: locked, unreachable, damaged.
  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes?

  /// Stores `secret`, in place of the one that was there.
  ///
  /// When it returns, the secret has reached the disk, where the backend has one. When it throws, the
  /// secret that was there before is still there. An empty secret is stored, and is not a missing one.
  /// `metadata` is merged as ``SecretMetadata/merged(_:over:now:)`` says: `nil` keeps what was there.
  /// Throws `.tooLarge` above the backend's cap, and stores nothing.
  func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError)

  /// Removes the secret for good. Returns `false` where there was none, which is no error.
  @discardableResult
  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool

  /// Names and metadata of the secrets in `service`, or of all where it is `nil`, sorted by identifier.
  /// Never a value, and no value is decrypted to make the list.
  func items(inService service: String?) throws(SecretError) -> [SecretItem]

  /// Name and metadata of one secret, or `nil` where there is none.
  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem?
}

extension SecretBackend {
  /// Stores `secret` and keeps the metadata that was there.
  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier
  ) throws(SecretError) {
    try store(secret, for: identifier, metadata: nil)
  }

  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try items(inService: identifier.service).first { $0.identifier == identifier }
  }
}

/// A backend that tells of changes, its own and other processes'.
public protocol ObservableSecretBackend: SecretBackend {
  /// A stream of changes from now on, for as long as it is kept. Each caller gets a stream of its own, and
  /// each change once. A failure to watch does not end it; what was missed is told as a change of everything.
  func changes() -> AsyncStream<SecretChange>
}

/// That something changed. It carries no value: read the secret again.
public struct SecretChange: Hashable, Sendable {
  /// The secret that was stored or removed. `nil`: any may have been.
  public let identifier: SecretIdentifier?

  public init(_ identifier: SecretIdentifier?) { self.identifier = identifier }
}

/// A backend that makes several changes at once: all of them, or none.
public protocol TransactionalSecretBackend: SecretBackend {
  /// Runs `body` with the store to itself, then commits its changes in one durable step.
  ///
  /// Reads inside see the transaction's own changes. If `body` throws, nothing was changed. Inside, use
  /// only the transaction: the backend's own methods throw `.conflict` there. Keep it short, since writers
  /// elsewhere are waiting; and do not keep the transaction, which throws `.conflict` once it has ended.
  func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R
}

/// The calls that can be made inside a transaction. They mean what they mean on ``SecretBackend``.
public protocol SecretTransaction {
  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes?
  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem?
  func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError)
  @discardableResult
  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool
}
