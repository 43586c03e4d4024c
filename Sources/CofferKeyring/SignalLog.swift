#if Keyring
/// The signals that came since they were last taken: per item the last one, in the order of the first.
final class SignalLog {
  enum Event {
    case present(String)
    case deleted(String)
    /// A collection came, went, or was locked or unlocked; or the service did.
    case everything
  }
  private var order: [String] = []
  private var events: [String: Event] = [:]
  private static let everything = ""

  var isEmpty: Bool { order.isEmpty }

  func note(_ signal: BusSignal) {
    switch signal.member {
    case "ItemCreated", "ItemChanged":
      if let path = signal.arguments[0]?.string { note(.present(path), path) }
    case "ItemDeleted":
      if let path = signal.arguments[0]?.string { note(.deleted(path), path) }
    case "CollectionCreated", "CollectionDeleted", "CollectionChanged":
      note(.everything, Self.everything)
    default: break
    }
  }

  /// That the service's name has another owner. A first owner is one too: it may bring other secrets.
  func noteOwner(_ signal: BusSignal) {
    if let owner = signal.arguments[2]?.string, !owner.isEmpty { note(.everything, Self.everything) }
  }

  private func note(_ event: Event, _ key: String) {
    if events.updateValue(event, forKey: key) == nil { order.append(key) }
  }

  func take() -> [Event] {
    defer { (order, events) = ([], [:]) }
    return order.compactMap { events[$0] }
  }
}
#endif
