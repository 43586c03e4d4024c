public import FoundationEssentials
internal import Synchronization

/// A backend in guarded memory. Its secrets end with the process: for tests, and for programs that must not store
/// secrets on a disk. Thread-safe.
///
/// Like a vault, the backend keeps earlier versions of its secrets up to a ``HistoryLimit``. They are in guarded memory
/// too. A version that is too old is no longer returned. Its memory is wiped at the next change of the secret or of the
/// limit. With ``HistoryLimit/none``, a value is wiped when it is replaced or removed.
///
/// Every method that throws, except ``tryLease(_:)``, throws `.conflict` inside a transaction of the same backend, and
/// `.timedOut` if another thread's transaction takes longer than 10 seconds.
public final class MemoryBackend: SecretBackend {
  /// The maximum size of a secret in bytes: 16 MiB, as in a vault.
  package static let maximumSecretSize = 16 * 1024 * 1024

  private let lock = DeadlineLock()
  private let broadcast = ChangeBroadcast()
  private let now: @Sendable () -> Date
  private let repeatsTransactions: Bool
  private nonisolated(unsafe) var state: MemoryState  // only under the lock
  private let leases = Mutex<Set<SecretIdentifier>>([])

  /// Creates an empty backend that keeps earlier versions up to the limit `history`. `now` returns the time for
  /// metadata, and for the age of earlier versions.
  ///
  /// With `repeatsTransactions`, the body of each transaction runs twice, and only the second run counts, as if another
  /// machine had won a race. So a test can check that the body can be repeated.
  public init(
    history: HistoryLimit = .standard, repeatsTransactions: Bool = false,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    state = MemoryState(limit: history)
    (self.repeatsTransactions, self.now) = (repeatsTransactions, now)
  }

  /// The longest wait for another thread's transaction.
  private static let timeout = Duration.seconds(10)

  private func read<R>(_ body: (MemoryState) throws(SecretError) -> R) throws(SecretError) -> R {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in try body(state) }
  }

  // MARK: SecretBackend

  /// All features.
  public var features: SecretFeatures { [.transactions, .changes, .leases, .history] }

  /// Returns the secret, or `nil` if there is no such secret. Throws `.conflict` or `.timedOut`.
  public func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try read { state in state.current(identifier) }
  }

  /// Returns the identifiers and metadata of the secrets in `service`, or of all secrets if `service` is `nil`. Throws
  /// `.conflict` or `.timedOut`.
  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try read { state in state.secrets(inService: service).map(\.item) }
  }

  /// Stores `value`, and replaces any existing secret with that identifier, which becomes an earlier version.
  ///
  /// Throws `.tooLarge` above 16 MiB, `.invalidMetadata` for metadata out of bounds, `.conflict` or `.timedOut`.
  public func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try withTransaction { transaction throws(SecretError) in
      try transaction.store(value, for: identifier, metadata: metadata, history: history)
    }
  }

  /// Removes the secret, which becomes an earlier version. Returns `false` if there is no such secret. Throws
  /// `.conflict` or `.timedOut`.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try withTransaction { transaction throws(SecretError) in
      try transaction.remove(identifier, history: history)
    }
  }

  /// Calls `body` with the secrets as of one moment. Throws what `body` throws, `.conflict` or `.timedOut`.
  public func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    // Outside the lock, because `body` may use the backend.
    for secret in try read({ state in state.secrets(inService: service) }) { try body(secret) }
  }

  /// Returns the versions of a secret within the history limit, newest first, without values. Throws `.conflict` or
  /// `.timedOut`.
  public func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try read { state in SecretVersion.list(state.history(identifier, now: now())) }
  }

  /// Returns one version with its value, or `nil` if there is no such version within the history limit. Throws
  /// `.conflict` or `.timedOut`.
  public func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try read { state in state.secret(identifier, version: version, now: now()) }
  }

  /// Returns the removed secrets of which there is a version within the history limit, sorted by identifier. Throws
  /// `.conflict` or `.timedOut`.
  public func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try read { state in state.removedItems(inService: service, now: now()) }
  }

  /// Removes the secret and its earlier versions, and wipes their values. Returns `false` if there was nothing of it.
  /// Throws `.conflict` or `.timedOut`.
  @discardableResult
  public func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try withTransaction { transaction throws(SecretError) in try transaction.erase(identifier) }
  }

  /// Runs `body` with exclusive access, then makes its changes at once. Throws `.conflict` or `.timedOut`.
  public func transaction<R, E: Error>(
    _ body: (any SecretTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    var changed: [SecretIdentifier] = []
    let result = try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      var runs = repeatsTransactions ? 2 : 1
      while true {
        let transaction = MemoryTransaction(state, now: now())
        let result = Result { () throws(E) in try body(transaction) }
        runs -= 1
        if runs > 0 { continue }
        if case .success = result { (state, changed) = (transaction.state, transaction.changed) }
        return result
      }
    }
    let notices = changed.count > ChangeBroadcast.capacity ? [nil] : changed.map { Optional($0) }
    for identifier in notices { broadcast.send(SecretChange(madeNow: identifier)) }
    return result
  }

  /// Returns a new stream of the changes by this object.
  public func changes() -> AsyncStream<SecretChange> { broadcast.subscribe() }

  /// Takes the lease of a secret, which holds between the threads of this process. Returns `nil` if another thread has
  /// the lease. Throws nothing.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    guard leases.withLock({ $0.insert(identifier).inserted }) else { return nil }
    return SecretLease { [weak self] in _ = self?.leases.withLock { $0.remove(identifier) } }
  }

  // MARK: The limit

  /// Returns the limit beyond which earlier versions are dropped. Throws `.conflict` or `.timedOut`.
  package func historyLimit() throws(SecretError) -> HistoryLimit { try read { state in state.limit } }

  /// Changes the limit, and wipes the versions beyond it. Throws `.conflict` or `.timedOut`.
  package func setHistoryLimit(_ limit: HistoryLimit) throws(SecretError) {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in state.setLimit(limit, now: now()) }
  }
}
