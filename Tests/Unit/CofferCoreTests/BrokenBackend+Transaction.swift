import CofferCore
import Foundation

/// The transactions of faults.
extension BrokenBackend {
  /// A transaction that changes the backend at once.
  struct Direct: SecretTransaction {
    let backend: MemoryBackend
    let pause: Bool
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      guard let value = try lookUp(identifier), let item = try item(identifier) else { return nil }
      return Secret(identifier, value: value, metadata: item.metadata)
    }
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      let found = try backend.lookUp(identifier)
      Thread.sleep(forTimeInterval: 0.0002)
      return found
    }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try backend.item(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try backend.items(inService: service)
    }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try backend.store(value, for: identifier, metadata: metadata, history: history)
      if pause { Thread.sleep(forTimeInterval: 0.0005) }
    }
    func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
      try backend.remove(identifier, history: history)
    }
  }

  /// A transaction whose reads do not see its own changes.
  struct Blind: SecretTransaction {
    let transaction: any SecretTransaction
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      guard let value = try lookUp(identifier), let item = try item(identifier) else { return nil }
      return Secret(identifier, value: value, metadata: item.metadata)
    }
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? { nil }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? { nil }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] { [] }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try transaction.store(value, for: identifier, metadata: metadata, history: history)
    }
    func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
      try transaction.remove(identifier, history: history)
    }
  }

  /// A transaction whose list is that of its beginning.
  struct Forgetful: SecretTransaction {
    let transaction: any SecretTransaction
    let items: [SecretItem]
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      guard let value = try lookUp(identifier), let item = try item(identifier) else { return nil }
      return Secret(identifier, value: value, metadata: item.metadata)
    }
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      try transaction.lookUp(identifier)
    }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try transaction.item(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      items.filter { service == nil || $0.identifier.service == service }
    }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try transaction.store(value, for: identifier, metadata: metadata, history: history)
    }
    func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
      try transaction.remove(identifier, history: history)
    }
  }

  /// A transaction that makes the last change of each secret.
  final class LastChanges: SecretTransaction {
    let transaction: any SecretTransaction
    private var changes: [SecretIdentifier: SecretBytes?] = [:]
    init(transaction: any SecretTransaction) { self.transaction = transaction }
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      guard let value = try lookUp(identifier), let item = try item(identifier) else { return nil }
      return Secret(identifier, value: value, metadata: item.metadata)
    }
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      guard let change = changes[identifier] else { return try transaction.lookUp(identifier) }
      return change
    }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try transaction.item(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try transaction.items(inService: service)
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
          try transaction.store(change, for: identifier)
        } else {
          try transaction.remove(identifier)
        }
      }
    }
  }

  /// A transaction that knows no versions, and erases what it removes.
  struct WithoutVersions: SecretTransaction {
    let transaction: any SecretTransaction
    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      try transaction.secret(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try transaction.items(inService: service)
    }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try transaction.store(value, for: identifier, metadata: metadata, history: history)
    }
    func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
      try transaction.remove(identifier, history: history)
    }
  }

  /// A transaction with a fault of `erase`.
  final class Erasing: SecretTransaction {
    private let backend: BrokenBackend
    private let transaction: any SecretTransaction
    private(set) var erased: [SecretIdentifier] = []

    init(_ transaction: any SecretTransaction, of backend: BrokenBackend) {
      (self.transaction, self.backend) = (transaction, backend)
    }

    func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      erased.append(identifier)
      switch backend.fault {
      case .eraseKeepsVersions:
        if try transaction.versions(of: identifier).isEmpty { return false }
        try transaction.remove(identifier)
        return true
      case .eraseOutlivesTheTransaction:
        do throws(SecretError) { return try transaction.erase(identifier) } catch { return false }
      case .eraseKeepsTheSecret:
        let current = try transaction.secret(identifier)
        let isKnown = try transaction.erase(identifier)
        if let current { try transaction.store(current.value, for: identifier) }
        return isKnown
      case .eraseIgnoresRemoved: if try transaction.item(identifier) == nil { return false }
      case .eraseAlwaysSaysTrue:
        try transaction.erase(identifier)
        return true
      case .eraseDropsOthers:
        for item in try transaction.items(inService: identifier.service) where item.identifier != identifier {
          try transaction.erase(item.identifier)
        }
      case .erasedIsListedAsRemoved: backend.noteRemoval(of: identifier)
      default: break
      }
      return try transaction.erase(identifier)
    }

    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      try transaction.secret(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try transaction.items(inService: service)
    }
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try transaction.store(value, for: identifier, metadata: metadata, history: history)
    }
    func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
      try transaction.remove(identifier, history: history)
    }
    func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
      try transaction.versions(of: identifier)
    }
    func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
      try transaction.secret(identifier, version: version)
    }
    func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
      try transaction.removedItems(inService: service)
    }
  }
}
