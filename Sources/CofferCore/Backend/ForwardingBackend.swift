/// A backend that passes every call on to another backend, and has its features. The base class for a backend that
/// changes only some calls. Thread-safe.
///
/// ```swift
/// final class CountingBackend: ForwardingBackend, @unchecked Sendable {
///   let reads = Atomic(0)
///   override func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
///     reads.add(1, ordering: .relaxed)
///     return try super.secret(identifier)
///   }
/// }
/// ```
///
/// `lookUp`, `item` and `forEachSecret` do not call `secret`: a subclass that changes what `secret` does overrides them
/// too. Calls inside of a transaction reach the transaction of the other backend, and a value that is observed reads
/// through ``withoutPrompts``: a subclass that must see every read overrides ``transaction(_:)`` and
/// ``withoutPrompts``. Each method throws what the same method of ``base`` throws.
open class ForwardingBackend: SecretBackend, @unchecked Sendable {  // not changed after init
  /// The backend that gets the calls.
  public let base: any SecretBackend
  /// The access that gets the calls on secrets: ``base``, or a check in front of it that a subclass sets in its init.
  package final var access: any SecretAccess

  /// Creates a backend that passes its calls to `base`.
  public init(_ base: any SecretBackend) { (self.base, access) = (base, base) }

  /// The features of ``base``.
  open var features: SecretFeatures { base.features }

  /// Calls ``base``.
  open func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try access.secret(identifier)
  }

  /// Calls ``base``.
  open func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try access.items(inService: service)
  }

  /// Calls ``base``.
  open func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try access.store(value, for: identifier, metadata: metadata, history: history)
  }

  /// Calls ``base``.
  @discardableResult
  open func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try access.remove(identifier, history: history)
  }

  /// Calls ``base``.
  open func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try access.item(identifier)
  }

  /// Calls ``base``.
  open func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try access.lookUp(identifier)
  }

  /// Calls ``base``.
  open func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    try access.forEachSecret(inService: service, body)
  }

  /// Calls ``base``.
  open func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try access.versions(of: identifier)
  }

  /// Calls ``base``.
  open func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try access.secret(identifier, version: version)
  }

  /// Calls ``base``.
  open func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try access.removedItems(inService: service)
  }

  /// Calls ``base``.
  @discardableResult
  open func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try access.erase(identifier) }

  /// Calls ``base``.
  open func transaction<R, E: Error>(
    _ body: (any SecretTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    try base.transaction(body)
  }

  /// Calls ``base``.
  open func changes() -> AsyncStream<SecretChange> { base.changes() }

  /// Calls ``base``.
  open func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    try base.tryLease(identifier)
  }

  /// Calls ``base``.
  open func close() throws(SecretError) {
    let stored = Result { () throws(SecretError) in try WaitingChanges.store(in: self) }
    try base.close()
    try stored.get()
  }

  /// The same property of ``base``, or this backend itself if ``base`` shows no prompts.
  open var withoutPrompts: any SecretBackend {
    let other = base.withoutPrompts
    return other === base ? self : other
  }
}
