#if Keyring
internal import CofferCore

/// Turns signals, which name items by their paths, into changes of secrets.
struct SignalTranslator {
  private let bus: BusConnection
  private let seconds: Double
  /// What was at a path: a deleted item cannot be asked any more.
  private var known: [String: SecretIdentifier] = [:]
  /// How many items are asked for their names in advance. Above it a removal may be told as a change of
  /// everything.
  private static let mostKnown = 2000

  init(_ bus: BusConnection, seconds: Double) {
    self.bus = bus
    self.seconds = seconds
  }

  /// Asks what the items that are there are called.
  mutating func learn() {
    do throws(ServiceFailure) {
      let found = try call(
        SecretServiceProxy.path, SecretServiceProxy.Interface.service, "SearchItems", [.dictionary([:])])
      for path in (found[0]?.strings ?? []).prefix(Self.mostKnown) { known[path] = try identifier(path) }
    } catch {
      // Not running, or going away: then a removal is told as a change of everything.
    }
  }

  mutating func changes(_ events: [SignalLog.Event]) -> [SecretChange] {
    var result: [SecretChange] = []
    for event in events {
      switch event {
      case .everything: result.append(SecretChange(nil))
      case .deleted(let path): result.append(SecretChange(known.removeValue(forKey: path)))
      case .present(let path):
        do throws(ServiceFailure) {
          // An item without a name of ours is another program's, and no secret that can be asked for.
          guard let identifier = try identifier(path) else { continue }
          if let old = known.updateValue(identifier, forKey: path), old != identifier {
            result.append(SecretChange(old))
          }
          result.append(SecretChange(identifier))
        } catch {
          result.append(SecretChange(nil))
        }
      }
    }
    var told: Set<SecretChange> = []
    return result.filter { told.insert($0).inserted }
  }

  private func identifier(_ path: String) throws(ServiceFailure) -> SecretIdentifier? {
    let answer = try call(
      path,
      SecretServiceProxy.Interface.properties,
      "Get",
      [.string(SecretServiceProxy.Interface.item), .string("Attributes")]
    )
    return answer[0]?.unboxed?.dictionary.flatMap(ItemAttributes.identifier)
  }

  private func call(
    _ path: String,
    _ interface: String,
    _ method: String,
    _ arguments: [Variant]
  ) throws(ServiceFailure) -> Variant {
    try bus.call(SecretServiceProxy.name, path: path, interface, method, arguments, seconds: seconds)
  }
}
#endif
