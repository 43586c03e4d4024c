internal import CofferCore
internal import Synchronization

/// The hubs that exist: one for each backend, identifier and form of a value. Thread-safe.
final class HubRegistry: Sendable {
  /// The registry of the process. Values with the same key share a hub, wherever they were created.
  static let shared = HubRegistry()

  struct Key: Hashable {
    /// The backend, or the source that will choose it. The hub keeps the object, so its id is not reused.
    let store: ObjectIdentifier
    let identifier: SecretIdentifier
    let form: ValueHub.Form
  }
  struct Entry { weak var hub: ValueHub? }
  let entries = Mutex<[Key: Entry]>([:])

  /// Returns the hub of a secret in the backend of `source`. Backends are distinguished by object identity.
  func hub(for identifier: SecretIdentifier, source: BackendSource, form: ValueHub.Form = ValueHub.Form()) -> ValueHub {
    var source = source
    // The default backend of the process can be given explicitly too. Both ways must lead to one hub.
    if let given = source.given, DefaultBackend.configured.backend === given {
      source = DefaultBackend.configured
    }
    let store = source.given.map { ObjectIdentifier($0) } ?? ObjectIdentifier(source)
    let key = Key(store: store, identifier: identifier, form: form)
    return entries.withLock { entries in
      if let hub = entries[key]?.hub { return hub }
      let hub = ValueHub(identifier, source, form) { [weak self] in
        // A new hub may have replaced the released one.
        self?.entries.withLock { if $0[key]?.hub == nil { $0[key] = nil } }
      }
      entries[key] = Entry(hub: hub)
      return hub
    }
  }
}
