public import CofferCore
internal import Synchronization

/// A backend that fails when a test says so, and otherwise passes every call on to another one. Thread-safe.
///
/// ```swift
/// let backend = FailingBackend()
/// backend.fail(.lookUp, with: SecretError(.locked, "The keyring is locked."))
/// ```
///
/// A failing call changes nothing. A call inside a transaction fails like one outside of it. Each method also throws what
/// the same method of ``base`` throws.
public final class FailingBackend: TransactionalSecretBackend, ObservableSecretBackend, LeasingSecretBackend {
  /// The calls that can fail.
  public enum Call: Hashable, Sendable, CaseIterable {
    /// `lookUp`.
    case lookUp
    /// `store`.
    case store
    /// `remove`.
    case remove
    /// `items` and `item`.
    case items
    /// The commit of a transaction, after its closure has returned.
    case commit
    /// `tryLease`.
    case lease

    init(_ call: CheckedAccess.Call) {
      self =
        switch call {
        case .lookUp: .lookUp
        case .items: .items
        case .store: .store
        case .remove: .remove
        }
    }
  }

  /// An error, and the number of calls that still fail with it, or `nil` for all.
  private typealias Failure = (error: SecretError, remaining: Int?)

  /// The backend behind this one. A test can read and change it as another process would.
  public let base: any TransactionalSecretBackend & ObservableSecretBackend & LeasingSecretBackend
  private let state = Mutex<(failures: [Call: Failure], counts: [Call: Int])>(([:], [:]))

  /// Creates a backend in memory, or one that passes its calls to `base`.
  public init(
    _ base: any TransactionalSecretBackend & ObservableSecretBackend & LeasingSecretBackend = MemoryBackend()
  ) {
    self.base = base
  }

  /// Makes the next `times` calls of that kind throw `error`, or all calls if `times` is `nil`.
  public func fail(_ call: Call, with error: SecretError, times: Int? = nil) {
    state.withLock { $0.failures[call] = (error, times) }
  }

  /// Lets all calls succeed again.
  public func recover() { state.withLock { $0.failures = [:] } }

  /// The number of calls of that kind, including those that failed.
  public func count(of call: Call) -> Int { state.withLock { $0.counts[call] ?? 0 } }

  private func admit(_ call: Call) throws(SecretError) {
    let error: SecretError? = state.withLock { state in
      state.counts[call, default: 0] += 1
      guard let failure = state.failures[call] else { return nil }
      if let remaining = failure.remaining {
        if remaining == 0 { return nil }
        state.failures[call]?.remaining = remaining - 1
      }
      return failure.error
    }
    if let error { throw error }
  }

  /// Returns the secret's bytes, or throws the error for ``Call/lookUp``.
  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try admit(.lookUp)
    return try base.lookUp(identifier)
  }

  /// Stores `secret`, or throws the error for ``Call/store``.
  public func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try admit(.store)
    try base.store(secret, for: identifier, metadata: metadata)
  }

  /// Removes the secret, or throws the error for ``Call/remove``.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try admit(.remove)
    return try base.remove(identifier)
  }

  /// Lists secrets, or throws the error for ``Call/items``.
  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try admit(.items)
    return try base.items(inService: service)
  }

  /// Returns one item, or throws the error for ``Call/items``.
  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try admit(.items)
    return try base.item(identifier)
  }

  /// Runs `body` in a transaction of the backend behind this one. Throws the error for ``Call/commit`` after `body`, and
  /// then nothing is changed.
  public func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try base.transaction { transaction throws(SecretError) in
      let result = try body(
        CheckedAccess(transaction) { [self] call throws(SecretError) in try admit(.init(call)) })
      try admit(.commit)
      return result
    }
  }

  /// Returns a new stream of the changes of the backend behind this one.
  public func changes() -> AsyncStream<SecretChange> { base.changes() }

  /// Takes the lease of a secret, or throws the error for ``Call/lease``.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    try admit(.lease)
    return try base.tryLease(identifier)
  }
}
