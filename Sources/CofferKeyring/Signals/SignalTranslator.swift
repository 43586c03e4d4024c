#if Keyring
internal import CofferCore

/// Translates the object paths in signals to the identifiers of secrets.
struct SignalTranslator {
  private let service: SecretServiceProxy
  /// The identifiers of the items at these paths. An item's attributes cannot be read after its deletion.
  private var known: [String: SecretIdentifier] = [:]
  /// The most items that ``learn()`` reads. The deletion of any other item is reported as a change of everything.
  private static let maximumLearned = 2000

  init(_ service: SecretServiceProxy) { self.service = service }

  /// Reads the identifiers of the existing items.
  mutating func learn() {
    do throws(ServiceFailure) {
      // If no collection is unlocked, a search finds nothing, and makes KeePassXC show its prompt.
      guard try service.hasUnlocked(service.collections()) else { return }
      let items = try service.searchAll().unlocked.prefix(Self.maximumLearned)
      for item in try service.read(["Attributes"], of: Array(items)) {
        known[item.path] = item.identifier
      }
    } catch {
      // The service is not running, or stopped. The deletion of an unknown item is a change of everything.
    }
  }

  /// Returns the changes that `events` stand for, each once.
  mutating func changes(_ events: [SignalQueue.Event]) -> [SecretChange] {
    var result: [SecretChange] = []
    for event in events {
      switch event {
      case .everything: result.append(SecretChange(nil))
      case .deleted(let path): result.append(SecretChange(known.removeValue(forKey: path)))
      case .present(let path):
        do throws(ServiceFailure) {
          // Another program's item without an identifier cannot be looked up here.
          let attributes = try service.property("Attributes", of: path, .item, \.self).dictionary
          guard let identifier = attributes.flatMap(ItemAttributes.identifier) else { continue }
          if let old = known.updateValue(identifier, forKey: path), old != identifier {
            result.append(SecretChange(old))
          }
          result.append(SecretChange(identifier))
        } catch {
          result.append(SecretChange(nil))
        }
      }
    }
    var returned: Set<SecretChange> = []
    return result.filter { returned.insert($0).inserted }
  }
}
#endif
