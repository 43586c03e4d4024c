#if Keyring
/// The events since the last ``drain()``: of each item only the last event, in the order of the items' first events.
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
  func add(_ member: String, _ arguments: Variant) {
    switch member {
    case "ItemCreated", "ItemChanged":
      if let path = arguments[0]?.path { add(.present(path), path) }
    case "ItemDeleted":
      if let path = arguments[0]?.path { add(.deleted(path), path) }
    case "CollectionCreated", "CollectionDeleted", "CollectionChanged": add(.everything, "")
    default: break
    }
  }

  /// Adds the event that a `NameOwnerChanged` reports. A first owner counts too: it may have other secrets.
  func addOwnerChange(_: String, _ arguments: Variant) {
    if let owner = arguments[2]?.string, !owner.isEmpty { add(.everything, "") }
  }

  private func add(_ event: Event, _ key: String) {
    if events.updateValue(event, forKey: key) == nil { order.append(key) }
  }

  func drain() -> [Event] {
    defer { (order, events) = ([], [:]) }
    return order.compactMap { events[$0] }
  }
}
#endif
