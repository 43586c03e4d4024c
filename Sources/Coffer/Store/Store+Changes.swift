internal import CofferCore
internal import FoundationEssentials
internal import Synchronization

extension Store {
  /// An operation that inserts an item when it runs.
  public func insert(_ item: Item) -> StoreOperation<Item> { insert([item]) }

  /// An operation that inserts items when it runs.
  public func insert(_ items: [Item]) -> StoreOperation<Item> { StoreOperation(self, [.insert(items)]) }

  /// An operation that removes an item when it runs.
  public func remove(_ item: Item) -> StoreOperation<Item> { remove([item]) }

  /// An operation that removes items when it runs.
  public func remove(_ items: [Item]) -> StoreOperation<Item> { StoreOperation(self, [.remove(items)]) }

  /// An operation that removes all items when it runs.
  public func removeAll() -> StoreOperation<Item> { StoreOperation(self, [.removeAll]) }

  /// Adds an item at the end, or replaces the item with its identifier, which keeps its place.
  public func insert(_ item: Item) async throws { try await perform([.insert([item])]) }

  /// Adds or replaces items in one step. Of several with one identifier, the last one is stored.
  public func insert(_ items: [Item]) async throws { try await perform([.insert(items)]) }

  /// Removes the item with the identifier of `item`. Succeeds if there is none.
  public func remove(_ item: Item) async throws { try await perform([.remove([item])]) }

  /// Removes items in one step.
  public func remove(_ items: [Item]) async throws { try await perform([.remove(items)]) }

  /// Removes all items, and no secret that does not decode as an item.
  public func removeAll() async throws { try await perform([.removeAll]) }

  func perform(_ steps: [StoreOperation<Item>.Step]) async throws {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.performNow(steps) }
  }

  /// The attribute of a secret's metadata that orders the items: a time in milliseconds, of 19 digits.
  private static var orderAttribute: String { "coffer.order" }
  private static var timeout: Duration { .seconds(120) }

  private struct Write: Sendable {
    let identifier: SecretIdentifier
    let item: Item
    let secret: SharedSecret
  }

  private enum Change {
    case put(Write, order: String)
    case drop(SecretIdentifier)
  }

  private func performNow(_ steps: [StoreOperation<Item>.Step]) throws(SecretError) {
    var encoded: [[Write]] = []
    for step in steps {
      guard case .insert(let items) = step else {
        encoded.append([])
        continue
      }
      encoded.append(try encode(items))
    }
    try order.withLock(timeout: Self.timeout) { () throws(SecretError) in
      try loadNow()
      let known = state.withLock { $0.contents.all }
      let (changes, events) = try source.resolve().withTransaction { transaction throws(SecretError) in
        var present = Set(known.map(\.identifier))
        var changes: [Change] = []
        var events: [StoreEvent<Item>] = []
        for (step, writes) in zip(steps, encoded) {
          switch step {
          case .insert(let items):
            for write in writes {
              let order = try store(write, in: transaction)
              present.insert(write.identifier)
              changes.append(.put(write, order: order))
            }
            events.append(StoreEvent(operation: .insert, items: writes.map(\.item)))
            _ = items
          case .remove(let items):
            for item in items {
              let identifier = try self.identifier(of: item)
              try transaction.remove(identifier)
              present.remove(identifier)
              changes.append(.drop(identifier))
            }
            events.append(StoreEvent(operation: .remove, items: items))
          case .removeAll:
            let removed = known.filter { present.contains($0.identifier) }.map(\.item)
            for identifier in present {
              try transaction.remove(identifier)
              changes.append(.drop(identifier))
            }
            present = []
            events.append(StoreEvent(operation: .remove, items: removed))
          }
        }
        return (changes, events)
      }
      publish { state in
        var dropped: Set<SecretIdentifier> = []
        for change in changes {
          switch change {
          case .drop(let identifier): dropped.insert(identifier)
          case .put(let write, let order):
            if !dropped.isEmpty { state.contents.remove(dropped) }
            dropped = []
            state.contents.put(.init(identifier: write.identifier, order: order, item: write.item))
          }
        }
        if !dropped.isEmpty { state.contents.remove(dropped) }
        return events
      }
    }
  }

  /// Stores an item, and returns its place in the order: that of the item which it replaces, or one at the end.
  private func store(_ write: Write, in transaction: any SecretTransaction) throws(SecretError) -> String {
    if let existing = try transaction.item(write.identifier)?.metadata.attributes[Self.orderAttribute] {
      try transaction.store(write.secret.bytes, for: write.identifier)
      return existing
    }
    let order = nextOrder()
    try transaction.store(
      write.secret.bytes, for: write.identifier,
      metadata: SecretMetadata(attributes: [Self.orderAttribute: order]))
    return order
  }

  /// The place after all known items, also if the clock went back.
  private func nextOrder() -> String {
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let next = state.withLock { state in
      state.lastOrder = max(now, state.lastOrder + 1)
      return state.lastOrder
    }
    let text = String(next)
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
      let secret: SharedSecret
      do { secret = SharedSecret(try coder.encode(item)) } catch {
        throw SecretError(
          .encodingFailed, "The item could not be encoded.", advice: "Check the encode(to:) of its type.",
          identifier: identifier)
      }
      let write = Write(identifier: identifier, item: item, secret: secret)
      if let index = indices[identifier] {
        writes[index] = write
      } else {
        indices[identifier] = writes.count
        writes.append(write)
      }
    }
    return writes
  }

  // MARK: Loading

  func loadInBackground() {
    CallThreads.shared.submit { [weak self] in
      do throws(SecretError) { try self?.loadIfNeeded() } catch {
        // `itemsHaveLoaded()` tries again, and throws the error.
      }
    }
  }

  func loadIfNeeded() throws(SecretError) {
    if state.withLock({ $0.isLoaded }) { return }
    try order.withLock(timeout: Self.timeout) { () throws(SecretError) in try loadNow() }
  }

  /// Loads the items if they are not loaded. Call it with `order` held.
  private func loadNow() throws(SecretError) {
    if state.withLock({ $0.isLoaded }) { return }
    let backend = try source.resolve()
    // Before the load, so that every change after it is noticed.
    watch(backend)
    let contents = try readAll(backend)
    publish { state in
      state.contents = contents
      state.isLoaded = true
      state.lastOrder = contents.all.last.flatMap { Int64($0.order) } ?? 0
      return [StoreEvent(operation: .loaded, items: contents.items)]
    }
  }

  private func readAll(_ backend: any SecretBackend) throws(SecretError) -> StoreContents<Item> {
    var contents = StoreContents<Item>()
    let listed = try backend.items(inService: storage.service).sorted { one, other in
      let (a, b) = (Self.order(of: one), Self.order(of: other))
      return a == b ? one.identifier < other.identifier : a < b
    }
    for item in listed { try read(item, backend, into: &contents) }
    return contents
  }

  private static func order(of item: SecretItem) -> String { item.metadata.attributes[orderAttribute] ?? "" }

  /// Reads one secret. One that was removed meanwhile is left out, and one that does not decode is a failure.
  private func read(
    _ item: SecretItem, _ backend: any SecretBackend, into contents: inout StoreContents<Item>
  ) throws(SecretError) {
    guard let secret = try backend.lookUp(item.identifier) else { return }
    do {
      let value = try coder.decode(Item.self, from: secret)
      contents.put(.init(identifier: item.identifier, order: Self.order(of: item), item: value))
    } catch {
      contents.failures[item.identifier] = SecretError(
        .decodingFailed, "The stored item does not decode as \(Item.self).",
        advice: "Store it again, or remove it.", identifier: item.identifier)
    }
  }

  // MARK: Changes by others

  private func watch(_ backend: any SecretBackend) {
    guard let backend = backend as? any ObservableSecretBackend, state.withLock({ $0.watch == nil }) else {
      return
    }
    let changes = backend.changes()
    let service = storage.service
    let task = Task { [weak self] in
      for await change in changes {
        if let identifier = change.identifier, !identifier.service.utf8.elementsEqual(service.utf8) {
          continue
        }
        guard let self else { return }
        await CallThreads.shared.run { self.readAgain(change.identifier) }
      }
    }
    state.withLock { $0.watch = task }
  }

  private func readAgain(_ identifier: SecretIdentifier?) {
    do throws(SecretError) {
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in
        guard state.withLock({ $0.isLoaded }) else { return }
        let backend = try source.resolve()
        var found = StoreContents<Item>()
        if let identifier {
          if let item = try backend.item(identifier) { try read(item, backend, into: &found) }
        } else {
          found = try readAll(backend)
        }
        adopt(found, onlyAbout: identifier)
      }
    } catch {
      // The backend cannot be read now. It reports a change when it can.
    }
  }

  /// Makes memory what was found in the backend, and reports the difference.
  private func adopt(_ found: StoreContents<Item>, onlyAbout identifier: SecretIdentifier?) {
    let known = state.withLock { $0.contents }
    let gone = (identifier.map { known.entry($0).map { [$0] } ?? [] } ?? known.all)
      .filter { found.entry($0.identifier) == nil }
    let new = found.all.filter { entry in
      known.entry(entry.identifier).map { $0.item != entry.item || $0.order != entry.order } ?? true
    }
    let failures = identifier == nil ? found.failures : known.failures.merging(found.failures) { $1 }
    if gone.isEmpty && new.isEmpty {
      state.withLock { $0.contents.failures = failures }
      return
    }
    publish { state in
      state.contents.remove(Set(gone.map(\.identifier)))
      for entry in new { state.contents.put(entry) }
      state.contents.failures = failures
      if let last = state.contents.all.last.flatMap({ Int64($0.order) }) {
        state.lastOrder = max(state.lastOrder, last)
      }
      var events: [StoreEvent<Item>] = []
      if !gone.isEmpty { events.append(StoreEvent(operation: .remove, items: gone.map(\.item))) }
      if !new.isEmpty { events.append(StoreEvent(operation: .insert, items: new.map(\.item))) }
      return events
    }
  }
}
