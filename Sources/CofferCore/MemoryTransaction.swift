internal import FoundationEssentials

/// The content of a ``MemoryBackend``.
struct MemoryState {
  /// A version of a secret, or its removal.
  struct Record: HistoryRecord {
    let number: Int
    let date: Date
    /// `nil` for a removal.
    let content: Content?

    func metadata() -> SecretMetadata { content?.metadata ?? SecretMetadata() }
    var isRemoval: Bool { content == nil }
    var time: Int64 { Timestamp.milliseconds(date) }
  }

  typealias Content = (secret: SharedSecret, metadata: SecretMetadata)

  /// The records of each secret in ascending order: at least one.
  private(set) var records: [SecretIdentifier: [Record]] = [:]
  private(set) var limit: HistoryLimit
  /// The number of the newest record of all secrets. No number is used again.
  private var lastNumber = 0

  init(limit: HistoryLimit) { self.limit = limit }

  /// Returns the current version of a secret, or `nil` if there is no such secret.
  func current(_ identifier: SecretIdentifier) -> Content? { records[identifier]?.last?.content }

  /// Returns the records of a secret within the limit, in ascending order.
  func history(_ identifier: SecretIdentifier, now: Date) -> [Record] {
    HistoryRule(limit, now: now).kept(records[identifier] ?? [])
  }

  /// Returns the sorted identifiers of the secrets that have a record, in `service` or in all services.
  func identifiers(inService service: String?) -> [SecretIdentifier] {
    records.keys.filter { service == nil || $0.service.utf8.elementsEqual((service ?? "").utf8) }.sorted()
  }

  /// Returns the sorted identifiers and the metadata of the secrets, in `service` or in all services.
  func items(inService service: String?) -> [SecretItem] {
    identifiers(inService: service).compactMap { identifier in
      current(identifier).map { SecretItem(identifier: identifier, metadata: $0.metadata) }
    }
  }

  /// Appends a record with `content`, or a removal, and drops the versions that are beyond the limit then.
  mutating func append(_ content: Content?, for identifier: SecretIdentifier, now: Date) {
    lastNumber += 1
    records[identifier, default: []].append(Record(number: lastNumber, date: now, content: content))
    prune(identifier, HistoryRule(limit, now: now))
  }

  /// Changes the limit, and drops the versions that are beyond it. A version that the old limit has dropped does
  /// not come back.
  mutating func setLimit(_ limit: HistoryLimit, now: Date) {
    for identifier in Array(records.keys) {
      for limit in [self.limit, limit] { prune(identifier, HistoryRule(limit, now: now)) }
    }
    self.limit = limit
  }

  /// Drops every record of a secret but its current version.
  mutating func purge(_ identifier: SecretIdentifier) {
    prune(identifier, HistoryRule(.none, now: .distantPast))
  }

  private mutating func prune(_ identifier: SecretIdentifier, _ rule: HistoryRule) {
    let kept = rule.kept(records[identifier] ?? [])
    records[identifier] = kept.isEmpty ? nil : kept
  }
}

/// Changes to a copy of a ``MemoryBackend``'s content, which the backend adopts at the end.
final class MemoryTransaction: SecretTransaction {
  private(set) var state: MemoryState
  private(set) var changed: [SecretIdentifier] = []
  private var purged: Set<SecretIdentifier> = []
  var isOpen = true
  let now: Date

  init(_ state: MemoryState, now: Date) { (self.state, self.now) = (state, now) }

  func setLimit(_ limit: HistoryLimit) { state.setLimit(limit, now: now) }

  /// The content after the transaction.
  func finish() -> MemoryState {
    for identifier in purged { state.purge(identifier) }
    return state
  }

  // MARK: SecretTransaction

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try requireOpen(isOpen)
    return state.current(identifier)?.secret.bytes.copy()
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try requireOpen(isOpen)
    return state.current(identifier).map { SecretItem(identifier: identifier, metadata: $0.metadata) }
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try requireOpen(isOpen)
    return state.items(inService: service)
  }

  func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try requireOpen(isOpen)
    try requireStorable(secret, for: identifier, metadata, maximum: MemoryBackend.maximumSecretSize)
    let merged = SecretMetadata.merged(metadata, over: state.current(identifier)?.metadata, now: now)
    state.append((SharedSecret(secret.copy()), merged), for: identifier, now: now)
    changed.append(identifier)
  }

  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    guard state.current(identifier) != nil else { return false }
    state.append(nil, for: identifier, now: now)
    changed.append(identifier)
    return true
  }

  func purge(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireOpen(isOpen)
    purged.insert(identifier)
    return changed.contains(identifier) || state.records[identifier] != nil
  }
}

/// Throws `.conflict` if a transaction is used after its end.
package func requireOpen(_ isOpen: Bool) throws(SecretError) {
  if !isOpen {
    throw SecretError(
      .conflict, "The transaction has ended.", advice: "Use it only in the closure that receives it.")
  }
}

/// Throws `.invalidMetadata` for metadata out of bounds, and `.tooLarge` for a secret of more than `maximum` bytes.
package func requireStorable(
  _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, _ metadata: SecretMetadata?, maximum: Int
) throws(SecretError) {
  try metadata?.validate()
  guard secret.count > maximum else { return }
  throw SecretError(
    .tooLarge, "The secret is \(secret.count) bytes long, but this backend accepts at most \(maximum).",
    advice: "Encrypt large data in a file, and store the file's key here.", identifier: identifier)
}
