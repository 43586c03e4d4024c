public import FoundationEssentials

/// Secrets in guarded memory, gone with the process: for tests, and for programs that must not persist.
public final class MemoryBackend: TransactionalSecretBackend, ObservableSecretBackend {
  /// The largest value, in bytes: the same as a vault's.
  public static let maximumSecretSize = 16 * 1024 * 1024

  private let lock = DeadlineLock()
  private let broadcast = ChangeBroadcast()
  private let now: @Sendable () -> Date
  private nonisolated(unsafe) var entries: [SecretIdentifier: Entry] = [:]  // only under the lock

  /// `now` gives the time for metadata.
  public init(now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
  }

  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      entries[identifier]?.secret.bytes.copy()
    }
  }

  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    try transaction { transaction throws(SecretError) in
      try transaction.store(secret, for: identifier, metadata: metadata)
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try transaction { transaction throws(SecretError) in try transaction.remove(identifier) }
  }

  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in
      entries
        .filter { service == nil || $0.key.service.utf8.elementsEqual((service ?? "").utf8) }
        .map { SecretItem(identifier: $0.key, metadata: $0.value.metadata) }
        .sorted { $0.identifier < $1.identifier }
    }
  }

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

/// Throws `.conflict` where a transaction is used after its end.
package func requireOpen(_ isOpen: Bool) throws(SecretError) {
  if !isOpen {
    throw SecretError(
      .conflict,
      "The transaction has ended.",
      advice: "Use it only inside the closure it was given to."
    )
  }
}

extension SecretError {
  /// That a value is above the backend's cap.
  package static func tooLarge(_ size: Int, maximum: Int, _ identifier: SecretIdentifier) -> SecretError {
    SecretError(
      .tooLarge,
      "The secret is \(size) bytes long, and the most this store takes is \(maximum).",
      advice: "Keep large data in a file, and its key here.",
      identifier: identifier
    )
  }
}
