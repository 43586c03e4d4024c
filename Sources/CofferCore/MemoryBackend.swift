public import FoundationEssentials
internal import Synchronization

/// A backend in guarded memory, which ends with the process: for tests, and for programs that must not store secrets
/// on a disk. Thread-safe.
///
/// Like a vault, the backend keeps earlier versions of its secrets up to a ``HistoryLimit``. They are in guarded memory
/// too. A version that is too old is no longer returned. Its memory is wiped at the next change of the secret or of the
/// limit. With ``HistoryLimit/none``, a value is wiped when it is replaced or removed.
///
/// Every method that throws, except ``tryLease(_:)``, throws `.conflict` inside a transaction of the same backend, and
/// `.timedOut` if another thread's transaction takes longer than 10 seconds.
public final class MemoryBackend: VersionedSecretBackend, ObservableSecretBackend, LeasingSecretBackend,
  SnapshotSecretBackend
{
  /// The maximum size of a secret in bytes: 16 MiB, as in a vault.
  public static let maximumSecretSize = 16 * 1024 * 1024

  private let lock = DeadlineLock()
  private let broadcast = ChangeBroadcast()
  private let now: @Sendable () -> Date
  private nonisolated(unsafe) var state: MemoryState  // only under the lock
  private let leases = Mutex<Set<SecretIdentifier>>([])

  /// Creates an empty backend that keeps earlier versions up to the limit `history`. `now` returns the time for
  /// metadata, and for the age of earlier versions.
  public init(history: HistoryLimit = .standard, now: @escaping @Sendable () -> Date = { Date() }) {
    state = MemoryState(limit: history)
    self.now = now
  }

  /// The longest wait for another thread's transaction.
  private static let timeout = Duration.seconds(10)

  private func read<R: ~Copyable>(_ body: (MemoryState) throws(SecretError) -> R) throws(SecretError) -> R {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in try body(state) }
  }

  private func change<R>(_ body: (MemoryTransaction) throws(SecretError) -> R) throws(SecretError) -> R {
    var changed: [SecretIdentifier] = []
    let result = try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      let transaction = MemoryTransaction(state, now: now())
      defer { transaction.isOpen = false }
      let result = try body(transaction)
      state = transaction.finish()
      changed = transaction.changed
      return result
    }
    for identifier in changed { broadcast.send(SecretChange(madeNow: identifier)) }
    return result
  }

  // MARK: SecretBackend

  /// Returns the secret's bytes, or `nil` if there is no such secret. Throws `.conflict` or `.timedOut`.
  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try read { state in state.current(identifier)?.secret.bytes.copy() }
  }

  /// Stores `secret`, and replaces any existing secret with that identifier, which becomes an earlier version.
  ///
  /// Throws `.tooLarge` above ``maximumSecretSize``, `.invalidMetadata` for metadata out of bounds, `.conflict` or
  /// `.timedOut`.
  public func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try change { transaction throws(SecretError) in
      try transaction.store(secret, for: identifier, metadata: metadata)
    }
  }

  /// Returns the identifiers and metadata of the secrets in `service`, or of all secrets if `service` is `nil`. Throws
  /// `.conflict` or `.timedOut`.
  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try read { state in state.items(inService: service) }
  }

  /// Runs `body` with exclusive access, then makes its changes at once. Throws what `body` throws, `.conflict` or `.timedOut`.
  public func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try change(body)
  }

  /// Returns a new stream of the changes by this object.
  public func changes() -> AsyncStream<SecretChange> { broadcast.subscribe() }

  /// Takes the lease of a secret, which holds between the threads of this process. Returns `nil` if another thread has the
  /// lease. Throws nothing.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    guard leases.withLock({ $0.insert(identifier).inserted }) else { return nil }
    return SecretLease { [weak self] in _ = self?.leases.withLock { $0.remove(identifier) } }
  }

  // MARK: SnapshotSecretBackend

  package func snapshot(ofService service: String) throws(SecretError) -> [SecretIdentifier: SharedSecret] {
    try read { state in
      var secrets: [SecretIdentifier: SharedSecret] = [:]
      for identifier in state.identifiers(inService: service) {
        secrets[identifier] = state.current(identifier)?.secret
      }
      return secrets
    }
  }

  // MARK: VersionedSecretBackend

  /// Returns the versions of a secret within the history limit, newest first, without values. Throws `.conflict` or
  /// `.timedOut`.
  public func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try read { state throws(SecretError) in
      try SecretVersion.list(state.history(identifier, now: now()))
    }
  }

  /// Returns the value of one version, or `nil` if there is no such version within the history limit. Throws `.conflict` or
  /// `.timedOut`.
  public func lookUp(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> SecretBytes? {
    try read { state in
      let record = state.history(identifier, now: now()).first { $0.number == version }
      return record?.content?.secret.bytes.copy()
    }
  }

  /// Returns the removed secrets of which there is a version within the history limit, sorted by identifier. Throws
  /// `.conflict` or `.timedOut`.
  public func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try read { state in
      let now = now()
      return state.identifiers(inService: service).compactMap { identifier in
        guard let newest = state.history(identifier, now: now).last, newest.isRemoval else { return nil }
        return RemovedSecret(identifier: identifier, removed: newest.date)
      }
    }
  }

  /// Stores earlier versions again as the current ones, at once. Throws what `choose` throws, `.conflict` or `.timedOut`.
  @discardableResult
  public func restore(
    _ identifiers: [SecretIdentifier],
    choosing choose: (SecretIdentifier, [SecretVersion]) throws(SecretError) -> Int?
  ) throws(SecretError) -> [SecretIdentifier: SecretVersion] {
    try change { transaction throws(SecretError) in
      try SecretVersion.restore(identifiers, choosing: choose) { identifier in
        transaction.state.history(identifier, now: transaction.now)
      } store: { identifier, record throws(SecretError) in
        guard let content = record.content else { return }
        try transaction.store(content.secret.bytes, for: identifier, metadata: content.metadata)
      }
    }
  }

  /// Returns the limit beyond which earlier versions are dropped. Throws `.conflict` or `.timedOut`.
  public func historyLimit() throws(SecretError) -> HistoryLimit { try read { state in state.limit } }

  /// Changes the limit, and wipes the versions beyond it. Throws `.conflict` or `.timedOut`.
  public func setHistoryLimit(_ limit: HistoryLimit) throws(SecretError) {
    try change { transaction in transaction.setLimit(limit) }
  }
}
