internal import CofferCore
internal import FoundationEssentials
internal import Synchronization

extension Store {
  // Both forms are `async`, and the compiler prefers the form that stores, even in top-level code.

  /// An operation that inserts an item when it runs.
  @_disfavoredOverload
  public func insert(_ item: Item) async -> StoreOperation<Item> { StoreOperation(self, [.insert([item])]) }

  /// An operation that inserts items when it runs.
  @_disfavoredOverload
  public func insert(_ items: [Item]) async -> StoreOperation<Item> { StoreOperation(self, [.insert(items)]) }

  /// An operation that removes an item when it runs.
  @_disfavoredOverload
  public func remove(_ item: Item) async -> StoreOperation<Item> { StoreOperation(self, [.remove([item])]) }

  /// An operation that removes items when it runs.
  @_disfavoredOverload
  public func remove(_ items: [Item]) async -> StoreOperation<Item> { StoreOperation(self, [.remove(items)]) }

  /// An operation that removes all items when it runs.
  @_disfavoredOverload
  public func removeAll() async -> StoreOperation<Item> { StoreOperation(self, [.removeAll]) }

  /// Replaces the item with the same identifier in its place, or adds the item at the end. Throws the backend's errors,
  /// `.invalidIdentifier`, `.encodingFailed`, `.timedOut`, and `.decodingFailed` if a secret with the identifier does
  /// not decode as an item; then changes nothing if the backend has transactions.
  public func insert(_ item: Item) async throws(SecretError) { try await perform([.insert([item])]) }

  /// Adds or replaces items in one step, as the method for one item does. Of several items with one identifier, the
  /// last one is stored.
  public func insert(_ items: [Item]) async throws(SecretError) { try await perform([.insert(items)]) }

  /// Removes the item with the identifier of `item`. Succeeds if there is none. Throws the backend's errors,
  /// `.invalidIdentifier`, `.timedOut`, and `.decodingFailed` as `insert` does; then changes nothing if the backend has
  /// transactions.
  public func remove(_ item: Item) async throws(SecretError) { try await perform([.remove([item])]) }

  /// Removes items in one step, as the method for one item does.
  public func remove(_ items: [Item]) async throws(SecretError) { try await perform([.remove(items)]) }

  /// Removes all items. A secret that does not decode as an item stays. Throws the backend's errors and `.timedOut`,
  /// and then changes nothing if the backend has transactions.
  public func removeAll() async throws(SecretError) { try await perform([.removeAll]) }

  func perform(_ steps: [StoreOperation<Item>.Step]) async throws(SecretError) {
    let store = current()
    try await DefaultBackend.offPool(store.source) { () throws(SecretError) in try store.performNow(steps) }
  }

  /// The attribute of a secret's metadata that orders the items: a time in milliseconds, of 19 digits.
  static var orderAttribute: String { "coffer.order" }

  private typealias Write = (identifier: SecretIdentifier, item: Item, secret: SecretBytes)

  /// A removal has no entry.
  private typealias Change = (identifier: SecretIdentifier, entry: StoreContents<Item>.Entry?)

  private func performNow(_ steps: [StoreOperation<Item>.Step]) throws(SecretError) {
    let encoded = try steps.map { step throws(SecretError) -> [Write] in
      if case .insert(let items) = step { try encode(items) } else { [] }
    }
    try inOrder { () throws(SecretError) in
      try loadNow()
      let (changes, events) = try change { transaction throws(SecretError) in
        var changes: [Change] = []
        var events: [StoreEvent<Item>] = []
        for (step, writes) in zip(steps, encoded) {
          switch step {
          case .insert:
            for write in writes {
              try requireReadable(write.identifier)
              changes.append((write.identifier, try store(write, in: transaction)))
            }
            events.append(StoreEvent(operation: .insert, items: writes.map(\.item)))
          case .remove(let items):
            for item in items {
              let identifier = try identifier(of: item)
              try requireReadable(identifier)
              try transaction.remove(identifier, history: history)
              changes.append((identifier, nil))
            }
            events.append(StoreEvent(operation: .remove, items: items))
          case .removeAll:
            let removed = try removeAll(in: transaction, after: changes)
            changes += removed.map { ($0.identifier, nil) }
            events.append(StoreEvent(operation: .remove, items: removed.compactMap(\.item)))
          }
        }
        return (changes, events)
      }
      publish { state in
        // All removals in one step, because each step looks at every entry. Of several changes of one identifier, the
        // last one counts.
        state.contents.remove(Set(changes.filter { $0.entry == nil }.map(\.identifier)))
        let last = Dictionary(changes.enumerated().map { ($1.identifier, $0) }) { $1 }
        for (index, change) in changes.enumerated() where last[change.identifier] == index {
          if let entry = change.entry { state.contents.put(entry) }
        }
        return events
      }
    }
  }

  /// Runs `body` in a transaction of the backend. The store need not read these changes again. Without transactions,
  /// some changes may remain if `body` throws, so the store does read them.
  private func change<R>(_ body: (any SecretTransaction) throws(SecretError) -> R) throws(SecretError) -> R {
    let backend = try resolve()
    guard backend.features.contains(.transactions) else {
      do throws(SecretError) { return try backend.withTransaction(body) } catch {
        do throws(SecretError) { if !backend.features.contains(.changes) { try reload(nil) } } catch {}
        throw error
      }
    }
    return try SecretChange.making(for: self) { () throws(SecretError) in try backend.withTransaction(body) }
  }

  /// Throws `.decodingFailed` if the secret does not decode as an item: a later release may have stored it.
  private func requireReadable(_ identifier: SecretIdentifier) throws(SecretError) {
    if let failure = state.withLock({ $0.contents.failures[identifier] }) { throw failure }
  }

  /// Stores an item in the place of the item that it replaces, or else at the end, and returns its entry.
  private func store(
    _ write: Write, in transaction: any SecretTransaction
  ) throws(SecretError) -> StoreContents<Item>.Entry {
    let existing = try transaction.item(write.identifier)?.metadata.attributes[Self.orderAttribute]
    let order = existing ?? nextOrder()
    let metadata = SecretMetadata(attributes: [Self.orderAttribute: order])
    try transaction.store(
      write.secret, for: write.identifier, metadata: existing == nil ? .replace(metadata) : .newValue,
      history: history)
    return .init(key: StoreKey(order: order, identifier: write.identifier), item: write.item)
  }

  /// Removes every secret of the service, except those that failed to decode as items. Returns the removed secrets:
  /// first those in memory, in their order, and then those that other processes stored, without items.
  private func removeAll(
    in transaction: any SecretTransaction, after changes: [Change]
  ) throws(SecretError) -> [(identifier: SecretIdentifier, item: Item?)] {
    let (known, failures) = state.withLock { ($0.contents.entries, $0.contents.failures) }
    let inserted = changes.compactMap(\.entry)
    let ofItems = Set(inserted.map(\.identifier))
    var listed = Set(try transaction.items(inService: storage.service).map(\.identifier))
    listed = listed.filter { failures[$0] == nil || ofItems.contains($0) }
    var removed: [(identifier: SecretIdentifier, item: Item?)] = []
    for entry in known + inserted where listed.remove(entry.identifier) != nil {
      removed.append((entry.identifier, entry.item))
    }
    removed += listed.map { ($0, nil) }
    for secret in removed { try transaction.remove(secret.identifier, history: history) }
    return removed
  }

  /// The place after all known items, even if the clock was set back.
  private func nextOrder() -> String {
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let text = state.withLock { state in
      state.lastOrder = max(now, state.lastOrder + 1)
      return String(state.lastOrder)
    }
    return String(repeating: "0", count: max(0, 19 - text.count)) + text
  }

  private func identifier(of item: Item) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: storage.service, account: identify(item))
  }

  /// Encodes a batch. Of several items with one identifier, the last one is stored, at the place of the first.
  private func encode(_ items: [Item]) throws(SecretError) -> [Write] {
    var writes: [Write] = []
    var indices: [SecretIdentifier: Int] = [:]
    for item in items {
      let identifier = try identifier(of: item)
      let secret: SecretBytes
      do { secret = try coder.encode(item) } catch {
        throw SecretError(
          .encodingFailed, "The item could not be encoded.", advice: "Check the encode(to:) of its type.",
          identifier: identifier)
      }
      let write: Write = (identifier, item, secret)
      if let index = indices[identifier] {
        writes[index] = write
      } else {
        indices[identifier] = writes.count
        writes.append(write)
      }
    }
    return writes
  }
}
