/// A backend that passes every call on to another backend, and has its features. The base class of a decorator, which
/// watches, refuses or changes calls. Thread-safe.
///
/// ```swift
/// final class ReadOnlyBackend: ForwardingBackend, @unchecked Sendable {
///   override func decorate(_ access: any SecretAccess, for call: SecretCall) throws(SecretError) -> any SecretAccess {
///     if call.isChange { throw SecretError(.denied, "This store is only for reading.") }
///     return access
///   }
/// }
/// ```
///
/// Every call on secrets passes ``decorate(_:for:)``: those of the backend, those in its transactions and their
/// commits, and those of ``withoutPrompts``. Leases, `changes`, `unlock` and `close` do not. Each method throws what it
/// throws, and what the same method of ``base`` throws.
open class ForwardingBackend: SecretBackend, @unchecked Sendable {  // `base` does not change
  /// The backend that gets the calls.
  public let base: any SecretBackend

  /// Creates a backend that passes its calls to `base`.
  public init(_ base: any SecretBackend) { self.base = base }

  /// Returns the access that gets the call. `access` is ``base``, a transaction of it, or its `withoutPrompts`. Unless
  /// a subclass overrides this, the result is `access`. If this throws, the call throws the error.
  open func decorate(_ access: any SecretAccess, for call: SecretCall) throws(SecretError) -> any SecretAccess {
    access
  }

  private var access: RoutedAccess { decorated(base) }
  private func decorated(_ access: any SecretAccess) -> RoutedAccess {
    RoutedAccess { call throws(SecretError) in try self.decorate(access, for: call) }
  }

  /// The features of ``base``.
  open var features: SecretFeatures { base.features }

  /// Calls ``base``.
  public final func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try access.secret(identifier)
  }

  /// Calls ``base``.
  public final func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try access.items(inService: service)
  }

  /// Calls ``base``.
  public final func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try access.store(value, for: identifier, metadata: metadata, history: history)
  }

  /// Calls ``base``.
  @discardableResult
  public final func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try access.remove(identifier, history: history)
  }

  /// Calls ``base``.
  public final func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try access.item(identifier)
  }

  /// Calls ``base``.
  public final func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try access.lookUp(identifier)
  }

  /// Calls ``base``.
  public final func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    try access.forEachSecret(inService: service, body)
  }

  /// Calls ``base``.
  public final func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try access.versions(of: identifier)
  }

  /// Calls ``base``.
  public final func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try access.secret(identifier, version: version)
  }

  /// Calls ``base``.
  public final func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try access.removedItems(inService: service)
  }

  /// Calls ``base``.
  @discardableResult
  public final func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try access.erase(identifier) }

  /// Calls ``base``.
  public final func move(
    _ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool
  ) throws(SecretError) {
    try access.move(identifier, to: new, replacing: replacing)
  }

  /// Runs `body` in a transaction of ``base``, and then passes ``SecretCall/commit`` to ``decorate(_:for:)`` if the
  /// backend has transactions. If that throws, nothing is changed.
  public final func transaction<R, E: Error>(
    _ body: (any SecretTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    guard features.contains(.transactions) else {
      return try base.transaction { transaction throws(E) in try body(decorated(transaction)) }
    }
    let result = try base.transaction { transaction throws(Cancellation<E>) in
      let result: R
      do throws(E) { result = try body(decorated(transaction)) } catch { throw .body(error) }
      do throws(SecretError) { _ = try decorate(transaction, for: .commit) } catch { throw .commit(error) }
      return result
    }
    switch result {
    case .success(let result): return .success(result)
    case .failure(.body(let error)): return .failure(error)
    case .failure(.commit(let error)): throw error
    }
  }

  /// Why a transaction is not committed.
  private enum Cancellation<E: Error>: Error {
    case body(E)
    case commit(SecretError)
  }

  /// Calls ``base``.
  open func changes() -> AsyncStream<SecretChange> { base.changes() }

  /// Calls ``base``.
  open func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    try base.tryLease(identifier)
  }

  /// Calls ``base``.
  open func unlock() throws(SecretError) { try base.unlock() }

  /// Calls ``base``.
  open func close() throws(SecretError) { try base.close() }

  /// The same property of ``base``, decorated too, or this backend itself if ``base`` shows no prompts.
  public final var withoutPrompts: any SecretBackend {
    let other = base.withoutPrompts
    return other === base ? self : Unprompted(other, decorator: self)
  }

  private final class Unprompted: ForwardingBackend, @unchecked Sendable {  // `decorator` does not change
    let decorator: ForwardingBackend

    init(_ base: any SecretBackend, decorator: ForwardingBackend) {
      self.decorator = decorator
      super.init(base)
    }

    override var features: SecretFeatures { decorator.features }
    override func decorate(_ access: any SecretAccess, for call: SecretCall) throws(SecretError) -> any SecretAccess {
      try decorator.decorate(access, for: call)
    }
    override func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
      try decorator.tryLease(identifier)
    }
  }
}
