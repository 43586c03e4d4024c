import CofferCore
import CofferTestSupport
import Foundation

/// The transactions of faults.
extension BrokenBackend {
  /// A transaction that changes the backend at once.
  struct Direct: SecretTransaction, PassingAccess {
    let base: any SecretAccess
    let pause: Bool
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      let found = try base.secret(identifier)
      Thread.sleep(forTimeInterval: 0.0002)
      return found
    }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try base.store(value, for: identifier, metadata: metadata, history: history)
      if pause { Thread.sleep(forTimeInterval: 0.0005) }
    }
  }

  /// A transaction whose reads do not see its own changes.
  struct Blind: SecretTransaction, PassingAccess {
    let base: any SecretAccess
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? { nil }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] { [] }
  }

  /// A transaction whose list is that of its beginning.
  struct Forgetful: SecretTransaction, PassingAccess {
    let base: any SecretAccess
    let items: [SecretItem]
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      items.filter { service == nil || $0.identifier.service == service }
    }
  }

  /// A transaction that makes the last change of each secret.
  final class LastChanges: SecretTransaction, PassingAccess {
    let base: any SecretAccess
    private var changes: [SecretIdentifier: SecretBytes?] = [:]
    init(base: any SecretAccess) { self.base = base }
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      guard let value = try lookUp(identifier), let item = try item(identifier) else { return nil }
      return Secret(identifier, value: value, metadata: item.metadata)
    }
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      guard let change = changes[identifier] else { return try base.lookUp(identifier) }
      return change
    }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try base.item(identifier)
    }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) { changes[identifier] = .some(value) }
    func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
      changes[identifier] = .some(nil)
      return true
    }
    func make() throws(SecretError) {
      for (identifier, change) in changes {
        if let change {
          try base.store(change, for: identifier)
        } else {
          try base.remove(identifier)
        }
      }
    }
  }

  /// A transaction that knows no versions, and erases what it removes.
  struct WithoutVersions: SecretTransaction, PassingAccess {
    let base: any SecretAccess
  }

  /// A transaction with a fault of `erase`.
  final class Erasing: SecretTransaction, PassingAccess {
    private let backend: BrokenBackend
    let base: any SecretAccess
    private(set) var erased: [SecretIdentifier] = []

    init(_ base: any SecretAccess, of backend: BrokenBackend) {
      (self.base, self.backend) = (base, backend)
    }

    func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      erased.append(identifier)
      switch backend.fault {
      case .eraseKeepsVersions:
        if try base.versions(of: identifier).isEmpty { return false }
        try base.remove(identifier)
        return true
      case .eraseKeepsTheSecret:
        let current = try base.secret(identifier)
        let isKnown = try base.erase(identifier)
        if let current { try base.store(current.value, for: identifier) }
        return isKnown
      case .eraseIgnoresRemoved: if try base.item(identifier) == nil { return false }
      case .eraseAlwaysSaysTrue:
        try base.erase(identifier)
        return true
      case .eraseDropsOthers:
        for item in try base.items(inService: identifier.service) where item.identifier != identifier {
          try base.erase(item.identifier)
        }
      case .erasedIsListedAsRemoved: backend.noteRemoval(of: identifier)
      default: break
      }
      return try base.erase(identifier)
    }

    func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
      try base.versions(of: identifier)
    }
    func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
      try base.secret(identifier, version: version)
    }
    func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
      try base.removedItems(inService: service)
    }
  }
}
