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
/// Each item is one secret, whose account is the item's identifier. The items are in the order of their first insertion,
/// also after a restart. A change is stored first, then made in memory, and then reported to ``events`` and Observation.
/// Changes by other processes are made in memory when the backend reports them. A secret that does not decode as an item
/// is in ``failures``, stays stored, and hides no other. Thread-safe.
public final class Store<Item: Codable & Sendable & Equatable>: Sendable, Observable {
  struct State {
    var contents = StoreContents<Item>()
    var isLoaded = false
    var lastOrder: Int64 = 0
    var latestEvent = StoreEvent<Item>(operation: .initialized, items: [])
    var nextSubscriber = 0
    var subscribers: [Int: StreamBuffer<StoreEvent<Item>>] = [:]
    var watch: Task<Void, Never>?
  }

  /// The service and the backend of the items.
  public let storage: SecretScope
  let source: BackendSource
  let coder: any SecretCoder
  let identify: @Sendable (Item) -> String
  /// Held during a change or a load, so that memory and events follow the order of the backend.
  let order = DeadlineLock()
  let state = Mutex(State())
  private let registrar = ObservationRegistrar()

  init(
    _ storage: SecretScope, _ coder: any SecretCoder, identify: @escaping @Sendable (Item) -> String
  ) {
    self.storage = storage
    self.coder = coder
    self.identify = identify
    source = storage.backend.map { BackendSource(given: $0) } ?? DefaultBackend.source
  }

  deinit { state.withLock { $0.watch?.cancel() } }

  /// Creates a store, and begins to load its items in the background. ``itemsHaveLoaded()`` waits for them.
  ///
  /// - Parameters:
  ///   - storage: The service of the items, which should contain nothing else, and their backend.
  ///   - cacheIdentifier: The property that identifies an item: 1…1024 UTF-8 bytes without NUL.
  ///   - coder: The conversion between items and bytes.
  public convenience init(
    storage: SecretScope, cacheIdentifier: any KeyPath<Item, String> & Sendable,
    coder: any SecretCoder = StandardSecretCoder()
  ) {
    self.init(storage, coder) { $0[keyPath: cacheIdentifier] }
    loadInBackground()
  }

  /// Creates a store, and returns when its items are loaded. Throws the errors of the backend.
  public convenience init(
    storage: SecretScope, cacheIdentifier: any KeyPath<Item, String> & Sendable,
    coder: any SecretCoder = StandardSecretCoder()
  ) async throws {
    self.init(storage, coder) { $0[keyPath: cacheIdentifier] }
    try await itemsHaveLoaded()
  }

  // MARK: Reading

  /// The items in the order of their first insertion. Empty until they are loaded.
  public var items: [Item] {
    registrar.access(self, keyPath: \.items)
    return state.withLock { $0.contents.items }
  }

  /// The secrets of the service that do not decode as items, with their errors.
  public var failures: [SecretIdentifier: SecretError] { state.withLock { $0.contents.failures } }

  /// Waits until the items are loaded. Throws the errors of the backend; a later call tries again.
  public func itemsHaveLoaded() async throws {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.loadIfNeeded() }
  }

  /// A new stream of the latest event and each event after it. It keeps the newest 100,000 items of events that were not
  /// read.
  public var events: AsyncStream<StoreEvent<Item>> {
    let buffer = StreamBuffer<StoreEvent<Item>>(limit: 100_000)
    let key = state.withLock { state in
      state.nextSubscriber += 1
      state.subscribers[state.nextSubscriber] = buffer
      buffer.yield(state.latestEvent)
      return state.nextSubscriber
    }
    return buffer.stream { [weak self] in _ = self?.state.withLock { $0.subscribers.removeValue(forKey: key) }
    }
  }

  /// Changes the state, and reports the events. Call it with `order` held.
  func publish(_ change: (inout State) -> [StoreEvent<Item>]) {
    registrar.withMutation(of: self, keyPath: \.items) {
      state.withLock { state in
        for event in change(&state) {
          state.latestEvent = event
          for buffer in state.subscribers.values { buffer.yield(event, size: max(1, event.items.count)) }
        }
      }
    }
  }
}

extension Store where Item: Identifiable, Item.ID == String {
  /// Creates a store of items that are identified by their `id`. Loads in the background.
  public convenience init(storage: SecretScope, coder: any SecretCoder = StandardSecretCoder()) {
    self.init(storage, coder) { $0.id }
    loadInBackground()
  }

  /// Creates a store of items that are identified by their `id`, and loads them. Throws the errors of the backend.
  public convenience init(storage: SecretScope, coder: any SecretCoder = StandardSecretCoder()) async throws {
    self.init(storage, coder) { $0.id }
    try await itemsHaveLoaded()
  }
}

extension Store where Item: Identifiable, Item.ID: LosslessStringConvertible {
  /// Creates a store of items that are identified by the text of their `id`, such as an integer. Loads in the
  /// background.
  public convenience init(storage: SecretScope, coder: any SecretCoder = StandardSecretCoder())
  where Item.ID: BinaryInteger {
    self.init(storage, coder) { $0.id.description }
    loadInBackground()
  }

  /// Creates a store of items that are identified by the text of their `id`, such as an integer, and loads them. Throws
  /// the errors of the backend.
  public convenience init(storage: SecretScope, coder: any SecretCoder = StandardSecretCoder()) async throws
  where Item.ID: BinaryInteger {
    self.init(storage, coder) { $0.id.description }
    try await itemsHaveLoaded()
  }
}
