#if Keyring
/// The signals since the last ``drain()``, coalesced: for each item the last event, in the order of the first
/// ones.
final class SignalQueue {
  enum Event: Equatable {
    /// The item was created or changed.
    case present(String)
    case deleted(String)
    /// A collection was created, deleted, locked or unlocked, or another process became the service.
    case everything
  }
  private var order: [String] = []
  private var events: [String: Event] = [:]

  var isEmpty: Bool { order.isEmpty }

  /// Adds the event that a signal of the service or of a collection reports.
  func add(_ signal: BusSignal) {
    switch signal.member {
    case "ItemCreated", "ItemChanged":
      if let path = signal.arguments[0]?.path { add(.present(path), path) }
    case "ItemDeleted":
      if let path = signal.arguments[0]?.path { add(.deleted(path), path) }
    case "CollectionCreated", "CollectionDeleted", "CollectionChanged": add(.everything, "")
    default: break
    }
  }

  /// Adds the event that a `NameOwnerChanged` reports. A first owner counts too: it may have other secrets.
  func addOwnerChange(_ signal: BusSignal) {
    if let owner = signal.arguments[2]?.string, !owner.isEmpty { add(.everything, "") }
  }

  private func add(_ event: Event, _ key: String) {
    if events.updateValue(event, forKey: key) == nil { order.append(key) }
  }

  /// Removes all events and returns them.
  func drain() -> [Event] {
    defer { (order, events) = ([], [:]) }
    return order.compactMap { events[$0] }
  }
}
#endif
