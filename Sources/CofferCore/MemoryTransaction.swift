internal import FoundationEssentials

/// The content of a ``MemoryBackend``.
struct MemoryState {
  /// A version of a secret, or its removal.
  struct Record: HistoryRecord {
    let number: Int
    let date: Date
    /// `nil` for a removal.
    let content: Secret?
    let keepsNothing: Bool

    var metadata: SecretMetadata { content?.metadata ?? SecretMetadata() }
    var isRemoval: Bool { content == nil }
    var time: Int64 { Timestamp.milliseconds(date) }
  }

  /// The records of each secret in ascending order: at least one.
  private(set) var records: [SecretIdentifier: [Record]] = [:]
  private(set) var limit: HistoryLimit
  /// The number of the newest record of all secrets. No number is used again.
  private var lastNumber = 0

  init(limit: HistoryLimit) { self.limit = limit }

  func current(_ identifier: SecretIdentifier) -> Secret? {
    records[identifier]?.last?.content
  }

  /// Returns the records of a secret within the limit, in ascending order.
  func history(_ identifier: SecretIdentifier, now: Date) -> [Record] {
    HistoryRule(limit, now: now).kept(records[identifier] ?? [])
  }

  /// Returns the sorted identifiers of the secrets that have a record, in `service` or in all services.
  private func identifiers(inService service: String?) -> [SecretIdentifier] {
    records.keys.filter { service == nil || $0.service.utf8.elementsEqual((service ?? "").utf8) }.sorted()
  }

  func secrets(inService service: String?) -> [Secret] {
    identifiers(inService: service).compactMap { current($0) }
  }

  /// Returns the removed secrets of which there is a version within the limit.
  func removedItems(inService service: String?, now: Date) -> [RemovedSecret] {
    identifiers(inService: service).compactMap { identifier in
      guard let newest = history(identifier, now: now).last, newest.isRemoval else { return nil }
      return RemovedSecret(identifier: identifier, removed: newest.date)
    }
  }

  func secret(_ identifier: SecretIdentifier, version: Int, now: Date) -> Secret? {
    history(identifier, now: now).first { $0.number == version }?.content
  }

  /// Appends a record with `content`, or a removal, and drops the versions that are then beyond the limit.
  mutating func append(_ content: Secret?, for identifier: SecretIdentifier, _ history: History, now: Date) {
    lastNumber += 1
    let former = records[identifier] ?? []
    let keepsNothing = history.keepsNothing(after: former.last)
    let record = Record(number: lastNumber, date: now, content: content, keepsNothing: keepsNothing)
    records[identifier] = former + [record]
    prune(identifier, HistoryRule(limit, now: now))
  }

  /// Changes the limit, and drops the versions that are beyond it. A version that the old limit has dropped does not
  /// come back.
  mutating func setLimit(_ limit: HistoryLimit, now: Date) {
    for identifier in Array(records.keys) {
      for limit in [self.limit, limit] { prune(identifier, HistoryRule(limit, now: now)) }
    }
    self.limit = limit
  }

  /// Drops every record of a secret. Returns whether there was one.
  mutating func erase(_ identifier: SecretIdentifier) -> Bool {
    records.removeValue(forKey: identifier) != nil
  }

  private mutating func prune(_ identifier: SecretIdentifier, _ rule: HistoryRule) {
    let kept = rule.kept(records[identifier] ?? [])
    records[identifier] = kept.isEmpty ? nil : kept
  }
}

/// Changes a copy of a ``MemoryBackend``'s content. The backend adopts the copy at the end.
final class MemoryTransaction: SecretTransaction {
  private(set) var state: MemoryState
  private(set) var changed: [SecretIdentifier] = []
  let now: Date

  init(_ state: MemoryState, now: Date) { (self.state, self.now) = (state, now) }

  // MARK: SecretAccess

  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    state.current(identifier)
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    state.secrets(inService: service).map(\.item)
  }

  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try requireStorable(value, for: identifier, maximum: MemoryBackend.maximumSecretSize)
    let metadata = try metadata.applied(to: state.current(identifier)?.metadata, now: now)
    let secret = Secret(identifier, value: value, metadata: metadata)
    state.append(secret, for: identifier, history, now: now)
    changed.append(identifier)
  }

  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    guard state.current(identifier) != nil else { return false }
    state.append(nil, for: identifier, history, now: now)
    changed.append(identifier)
    return true
  }

  func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    SecretVersion.list(state.history(identifier, now: now))
  }

  func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    state.secret(identifier, version: version, now: now)
  }

  func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    state.removedItems(inService: service, now: now)
  }

  func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    if state.current(identifier) != nil { changed.append(identifier) }
    return state.erase(identifier)
  }
}
