internal import CofferCore
internal import Synchronization

/// The hubs that exist: one for each backend and identifier of a value. Thread-safe.
final class HubRegistry: Sendable {
  /// The registry of the process, because values with one key share a hub wherever they were made.
  static let shared = HubRegistry()

  private struct Key: Hashable {
    /// The backend, or the source that will choose it. The hub keeps the object, so its id is not reused.
    let store: ObjectIdentifier
    let identifier: SecretIdentifier
  }
  private struct Entry {
    weak var hub: ValueHub?
  }
  private let entries = Mutex<[Key: Entry]>([:])

  /// Returns the hub of a secret in `backend`, or in the backend that `source` chooses.
  ///
  /// Backends are distinguished by object identity. For a backend of a value type, each value has its own hub, and
  /// sees the writes of other values only if the backend is an `ObservableSecretBackend`.
  func hub(for identifier: SecretIdentifier, backend: (any SecretBackend)?, source: BackendSource)
    -> ValueHub
  {
    guard let backend else { return hub(for: identifier, in: source, source) }
    guard type(of: backend) is AnyClass else {
      return ValueHub(identifier, source: BackendSource(given: backend), onRelease: {})
    }
    return hub(for: identifier, in: backend as AnyObject, BackendSource(given: backend))
  }

  private func hub(
    for identifier: SecretIdentifier,
    in store: AnyObject,
    _ source: BackendSource
  ) -> ValueHub {
    let key = Key(store: ObjectIdentifier(store), identifier: identifier)
    return entries.withLock { entries in
      if let hub = entries[key]?.hub { return hub }
      let hub = ValueHub(identifier, source: source) { [weak self] in self?.forget(key) }
      entries[key] = Entry(hub: hub)
      return hub
    }
  }

  private func forget(_ key: Key) {
    entries.withLock { entries in
      // A new hub may have replaced the released one.
      if let entry = entries[key], entry.hub == nil { entries[key] = nil }
    }
  }

  /// The number of hubs.
  var count: Int { entries.withLock { $0.count } }
}
