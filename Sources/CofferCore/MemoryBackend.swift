public import FoundationEssentials

/// A backend in guarded memory, which ends with the process: for tests, and for programs that must not store secrets
/// on a disk. Thread-safe.
public final class MemoryBackend: TransactionalSecretBackend, ObservableSecretBackend {
  /// The maximum size of a secret in bytes: 16 MiB, as in a vault.
  public static let maximumSecretSize = 16 * 1024 * 1024

  private let lock = DeadlineLock()
  private let broadcast = ChangeBroadcast()
  private let now: @Sendable () -> Date
  private nonisolated(unsafe) var entries: [SecretIdentifier: Entry] = [:]  // only under the lock

  /// Creates an empty backend. `now` returns the time for metadata.
  public init(now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
  }

  /// Returns the secret's bytes, or `nil` if there is no such secret.
  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      entries[identifier]?.secret.bytes.copy()
    }
  }

  /// Stores `secret`, and replaces any existing secret with that identifier.
  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    try transaction { transaction throws(SecretError) in
      try transaction.store(secret, for: identifier, metadata: metadata)
    }
  }

  /// Removes the secret. Returns `false` if there is no such secret.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try transaction { transaction throws(SecretError) in try transaction.remove(identifier) }
  }

  /// Returns the identifiers and metadata of the secrets in `service`, or of all secrets.
  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      entries
        .filter { service == nil || $0.key.service.utf8.elementsEqual((service ?? "").utf8) }
        .map { SecretItem(identifier: $0.key, metadata: $0.value.metadata) }
        .sorted { $0.identifier < $1.identifier }
    }
  }

  /// Runs `body` with exclusive access, then makes its changes at once.
  public func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    var changed: [SecretIdentifier] = []
    let result = try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      let transaction = Transaction(entries: entries, now: now())
      defer { transaction.isOpen = false }
      let result = try body(transaction)
      entries = transaction.entries
      changed = transaction.changed
      return result
    }
    for identifier in changed { broadcast.send(SecretChange(identifier)) }
    return result
  }

  /// Returns a new stream of the changes by this object.
  public func changes() -> AsyncStream<SecretChange> { broadcast.subscribe() }

  /// The longest wait for another thread's transaction.
  private static let timeout = Duration.seconds(10)

  private struct Entry {
    let secret: SharedSecret
    let metadata: SecretMetadata
  }

  private final class Transaction: SecretTransaction {
    var entries: [SecretIdentifier: Entry]
    var changed: [SecretIdentifier] = []
    var isOpen = true
    let now: Date

    init(entries: [SecretIdentifier: Entry], now: Date) {
      self.entries = entries
      self.now = now
    }

    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      try requireOpen(isOpen)
      return entries[identifier]?.secret.bytes.copy()
    }

    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try requireOpen(isOpen)
      return entries[identifier].map { SecretItem(identifier: identifier, metadata: $0.metadata) }
    }

    func store(
      _ secret: borrowing SecretBytes,
      for identifier: SecretIdentifier,
      metadata: SecretMetadata?
    ) throws(SecretError) {
      try requireOpen(isOpen)
      try metadata?.validate()
      if secret.count > MemoryBackend.maximumSecretSize {
        throw .tooLarge(secret.count, maximum: MemoryBackend.maximumSecretSize, identifier)
      }
      let merged = SecretMetadata.merged(metadata, over: entries[identifier]?.metadata, now: now)
      entries[identifier] = Entry(secret: SharedSecret(secret.copy()), metadata: merged)
      changed.append(identifier)
    }

    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      try requireOpen(isOpen)
      guard entries.removeValue(forKey: identifier) != nil else { return false }
      changed.append(identifier)
      return true
    }
  }
}

/// Throws `.conflict` if a transaction is used after its end.
package func requireOpen(_ isOpen: Bool) throws(SecretError) {
  if !isOpen {
    throw SecretError(
      .conflict,
      "The transaction has ended.",
      advice: "Use it only in the closure that receives it."
    )
  }
}

extension SecretError {
  /// The error for a secret of `size` bytes that is larger than the backend's maximum.
  package static func tooLarge(_ size: Int, maximum: Int, _ identifier: SecretIdentifier) -> SecretError {
    SecretError(
      .tooLarge,
      "The secret is \(size) bytes long, but this backend accepts at most \(maximum).",
      advice: "Encrypt large data in a file, and store the file's key here.",
      identifier: identifier
    )
  }
}
