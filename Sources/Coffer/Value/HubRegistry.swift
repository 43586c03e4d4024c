internal import CofferCore
internal import Synchronization

/// The hubs there are: one for each backend and identifier for which there is a value.
final class HubRegistry: Sendable {
  /// Process-wide, because two values with one key see each other wherever they were made.
  static let shared = HubRegistry()

  private struct Key: Hashable {
    /// Of the backend, or of the source that will choose it. The hub keeps the object, so no other gets its id.
    let store: ObjectIdentifier
    let identifier: SecretIdentifier
  }
  private struct Entry {
    weak var hub: SecretHub?
  }
  private let entries = Mutex<[Key: Entry]>([:])

  /// The hub for one secret in a backend that was given, or in the one that `source` chooses.
  ///
  /// Backends are told apart by object identity. One that is a value type has none: then each value has a
  /// hub of its own, and learns of other values' writes only if the backend tells of changes.
  func hub(for identifier: SecretIdentifier, backend: (any SecretBackend)?, source: BackendSource)
    -> SecretHub
  {
    guard let backend else { return hub(for: identifier, in: source, source) }
    guard type(of: backend) is AnyClass else {
      return SecretHub(identifier, source: BackendSource(given: backend), onRelease: {})
    }
    return hub(for: identifier, in: backend as AnyObject, BackendSource(given: backend))
  }

  private func hub(
    for identifier: SecretIdentifier,
    in store: AnyObject,
    _ source: BackendSource
  ) -> SecretHub {
    let key = Key(store: ObjectIdentifier(store), identifier: identifier)
    return entries.withLock { entries in
      if let hub = entries[key]?.hub { return hub }
      let hub = SecretHub(identifier, source: source) { [weak self] in self?.forget(key) }
      entries[key] = Entry(hub: hub)
      return hub
    }
  }

  private func forget(_ key: Key) {
    entries.withLock { entries in
      // A new hub may have taken the place while the old one was going.
      if let entry = entries[key], entry.hub == nil { entries[key] = nil }
    }
  }

  /// How many hubs are known.
  var count: Int { entries.withLock { $0.count } }
}
