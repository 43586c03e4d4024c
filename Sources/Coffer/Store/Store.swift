public import CofferCore
public import Observation
internal import Synchronization

/// Items that are stored in a keyring, a vault or another backend, and kept in memory for reading.
///
/// ```swift
/// let store = Store<Note>(storage: SecretScope(service: "com.example.notes"), cacheIdentifier: \.id)
/// try await store.insert(note)
/// ```
///
/// Each item is one secret, whose account is the item's identifier. The items are in the order of their first
/// insertion, even after a restart. A change is stored first, then made in memory, and then reported to ``events`` and
/// Observation. Changes by other processes are made in memory when the backend reports them. A secret that does not
/// decode as an item is in ``failures``, and stays stored. Without a backend in its scope, a store asks for
/// ``DefaultBackend`` at each use, and has separate items for each backend. Thread-safe.
public final class Store<Item: Codable & Sendable & Equatable>: Sendable, Observable {
  struct State {
    var contents = StoreContents<Item>()
    var isLoaded = false
    var loadError: SecretError?
    var lastOrder: Int64 = 0
    var latestEvent = StoreEvent<Item>(operation: .initialized, items: [])
    var subscribers: [ObjectIdentifier: StreamBuffer<StoreEvent<Item>>] = [:]
    /// Whether Observation must still be notified of a change, and whether a thread is notifying it.
    var isChanged = false, isNotifying = false
    var watch: Task<Void, Never>?
    /// For a store without a source: the stores of the process's backend and of tasks, whose sources keep them.
    var latest: Store?
    var ofTasks: [OfTask] = []
  }
  struct OfTask { weak var store: Store? }

  package let storage: SecretScope
  /// The source of the items. `nil`: ``current(loading:)`` has a store for each default backend.
  let source: BackendSource?
  let coder: any SecretCoder
  let history: History
  let identify: @Sendable (Item) -> String
  /// Held during a change or a load, so that memory and events follow the order of the backend.
  let order = DeadlineLock()
  let state = Mutex(State())
  private let registrar = ObservationRegistrar()

  init(
    _ storage: SecretScope, _ coder: any SecretCoder, _ history: History, _ source: BackendSource? = nil,
    identify: @escaping @Sendable (Item) -> String
  ) {
    (self.storage, self.coder, self.history, self.identify) = (storage, coder, history, identify)
    self.source = source ?? storage.backend.map { BackendSource(given: $0) }
  }

  deinit { state.withLock { $0.watch?.cancel() } }

  /// The store for the backend that is in use now. If `loading`, a new store begins to load its items.
  func current(loading: Bool = false) -> Store {
    if source != nil { return self }
    let source = DefaultBackend.source
    return state.withLock { state in
      state.ofTasks.removeAll { $0.store == nil }
      let known = [state.latest] + state.ofTasks.map(\.store)
      if let store = known.compactMap(\.self).first(where: { $0.source === source }) { return store }
      let store = Store(storage, coder, history, source, identify: identify)
      if source === DefaultBackend.ofTask, source.keep(store) {
        state.ofTasks.append(OfTask(store: store))
      } else {
        state.latest = store
      }
      if loading { store.loadInBackground() }
      return store
    }
  }

  /// Creates a store, and begins to load its items in the background. ``itemsHaveLoaded()`` waits for them.
  ///
  /// - Parameters:
  ///   - storage: The service of the items, which should contain nothing else, and their backend.
  ///   - cacheIdentifier: The property that identifies an item: 1…1024 UTF-8 bytes without NUL.
  ///   - coder: The conversion between items and bytes.
  ///   - history: What becomes of earlier values in a backend that keeps them. By default, an item that is replaced or
  ///     removed cannot be restored.
  public convenience init(
    storage: SecretScope, cacheIdentifier: any KeyPath<Item, String> & Sendable,
    coder: any SecretCoder = StandardSecretCoder(), history: History = .none
  ) {
    self.init(storage, coder, history) { $0[keyPath: cacheIdentifier] }
    loadInBackground()
  }

  /// Creates a store, and returns when its items are loaded. Throws the errors of the backend.
  public convenience init(
    storage: SecretScope, cacheIdentifier: any KeyPath<Item, String> & Sendable,
    coder: any SecretCoder = StandardSecretCoder(), history: History = .none
  ) async throws(SecretError) {
    self.init(storage, coder, history) { $0[keyPath: cacheIdentifier] }
    try await itemsHaveLoaded()
  }

  // MARK: Reading

  /// The items in the order of their first insertion. Empty until they are loaded: see ``loadError``.
  public var items: [Item] {
    let store = current(loading: true)
    store.registrar.access(store, keyPath: \.items)
    return store.state.withLock { $0.contents.items }
  }

  /// The item with the identifier `id`, or `nil` if there is none, or if the items are not loaded.
  public subscript(id id: String) -> Item? {
    let store = current(loading: true)
    store.registrar.access(store, keyPath: \.items)
    guard let identifier = try? SecretIdentifier(service: storage.service, account: id) else { return nil }
    return store.state.withLock { $0.contents.entry(identifier)?.item }
  }

  /// Why the items could not be loaded, or `nil` if they are loaded or were not tried yet. A store that loads in the
  /// background tries again, without a prompt: after two seconds, and later at least once a minute. Observation tracks
  /// this property.
  public var loadError: SecretError? {
    let store = current(loading: true)
    store.registrar.access(store, keyPath: \.items)
    return store.state.withLock { $0.loadError }
  }

  /// The secrets of the service that do not decode as items, with their errors.
  public var failures: [SecretIdentifier: SecretError] {
    current(loading: true).state.withLock { $0.contents.failures }
  }

  /// Waits until the items are loaded. Throws the errors of the backend; a later call tries again.
  public func itemsHaveLoaded() async throws(SecretError) {
    let store = current()
    try await DefaultBackend.offPool(store.source) { () throws(SecretError) in try store.loadIfNeeded() }
  }

  /// A new stream of the latest event and each event after it. The stream stays with the backend that is in use at its
  /// creation. Of the unread events, it keeps the newest ones, with at most 100,000 items in total.
  public var events: AsyncStream<StoreEvent<Item>> {
    let (store, buffer) = (current(loading: true), StreamBuffer<StoreEvent<Item>>(limit: 100_000))
    let key = ObjectIdentifier(buffer)
    store.state.withLock { state in
      state.subscribers[key] = buffer
      buffer.yield(state.latestEvent)
    }
    // The stream keeps the store of its backend.
    return buffer.stream { store.state.withLock { $0.subscribers[key] = nil } }
  }

  /// Runs `body` with `order` held. Notifies Observation of a change after it has released the lock, because an
  /// observer may read the items at once, and may wait for another change. One thread at a time notifies.
  func inOrder(_ body: () throws(SecretError) -> Void) throws(SecretError) {
    defer {
      while state.withLock({ state in
        if state.isNotifying || !state.isChanged { return false }
        (state.isNotifying, state.isChanged) = (true, false)
        return true
      }) {
        registrar.withMutation(of: self, keyPath: \.items) {}
        state.withLock { $0.isNotifying = false }
      }
    }
    try order.withLock(timeout: .seconds(120), body)
  }

  /// Changes the state, and reports the events. Call it in ``inOrder(_:)``.
  func publish(_ change: (inout State) -> [StoreEvent<Item>]) {
    state.withLock { state in
      for event in change(&state) {
        state.isChanged = true
        state.latestEvent = event
        for buffer in state.subscribers.values { buffer.yield(event, size: max(1, event.items.count)) }
      }
    }
  }
}

extension Store where Item: Identifiable, Item.ID: LosslessStringConvertible {
  /// Creates a store of items that are identified by their `id`, or by its text if it is a number. Loads in the
  /// background.
  public convenience init(
    storage: SecretScope, coder: any SecretCoder = StandardSecretCoder(), history: History = .none
  ) {
    self.init(storage, coder, history) { $0.id.description }
    loadInBackground()
  }

  /// Creates a store of items that are identified by their `id`, and loads them. Throws the errors of the backend.
  public convenience init(
    storage: SecretScope, coder: any SecretCoder = StandardSecretCoder(), history: History = .none
  ) async throws(SecretError) {
    self.init(storage, coder, history) { $0.id.description }
    try await itemsHaveLoaded()
  }
}
