import CofferCore
import Foundation
import Synchronization

extension BrokenBackend {
  func transaction<R>(_ body: (any SecretTransaction) throws(SecretError) -> R) throws(SecretError) -> R {
    switch fault {
    case .transactionIsNotUndone, .transactionsInterleave, .transactionIsSeenInParts,
      .tellsOfGivenUpTransactions, .transactionOutlivesItself:
      if fault == .transactionIsSeenInParts { turn.lock() }
      defer { if fault == .transactionIsSeenInParts { turn.unlock() } }
      return try body(Direct(backend: good, pause: fault == .transactionIsSeenInParts))
    case .transactionSwallowsErrors:
      var failure: SecretError?
      let result: R? = try good.transaction { transaction throws(SecretError) in
        do throws(SecretError) {
          return try body(transaction)
        } catch {
          failure = error
          return nil
        }
      }
      guard let result else { throw failure ?? SecretError(.io, "Nothing was given.") }
      return result
    case .transactionIsBlind:
      return try good.transaction { transaction throws(SecretError) in
        try body(Blind(transaction: transaction))
      }
    case .transactionListsThePast:
      let items = try good.items(inService: nil)
      return try good.transaction { transaction throws(SecretError) in
        try body(Forgetful(transaction: transaction, items: items))
      }
    case .transactionMakesOneVersion:
      return try good.transaction { transaction throws(SecretError) in
        let last = LastChanges(transaction: transaction)
        let result = try body(last)
        try last.make()
        return result
      }
    case .givenUpTransactionsLeaveVersions:
      do throws(SecretError) {
        return try good.transaction(body)
      } catch {
        for item in try good.items(inService: nil) {
          if let value = try good.lookUp(item.identifier) { try good.store(value, for: item.identifier) }
        }
        throw error
      }
    case .nestedUseIsAllowed, .nestedUseHangs, .nestedVersionsAreAllowed:
      isInTransaction.withLock { $0 = true }
      defer { isInTransaction.withLock { $0 = false } }
      return try good.transaction(body)
    case .purgeKeepsVersions, .purgeRemovesTheSecret, .purgeIgnoresRemoved, .purgeAlwaysSaysTrue,
      .purgeDropsOthers, .purgeIsNotUndone, .purgedIsListedAsRemoved, .purgeOutlivesTheTransaction:
      var purged: [SecretIdentifier] = []
      do throws(SecretError) {
        return try good.transaction { transaction throws(SecretError) in
          let purging = Purging(transaction, of: self)
          defer { purged = purging.purged }
          return try body(purging)
        }
      } catch {
        for identifier in purged where fault == .purgeIsNotUndone {
          _ = try good.transaction { transaction throws(SecretError) in try transaction.purge(identifier) }
        }
        throw error
      }
    default: return try good.transaction(body)
    }
  }

  /// A transaction that changes the backend at once.
  private struct Direct: SecretTransaction {
    let backend: MemoryBackend
    let pause: Bool
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
      _ secret: borrowing SecretBytes,
      for identifier: SecretIdentifier,
      metadata: SecretMetadata?
    ) throws(SecretError) {
      try backend.store(secret, for: identifier, metadata: metadata)
      if pause { Thread.sleep(forTimeInterval: 0.0005) }
    }
    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try backend.remove(identifier) }
  }

  /// A transaction whose reads do not see its own changes.
  private struct Blind: SecretTransaction {
    let transaction: any SecretTransaction
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? { nil }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? { nil }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] { [] }
    func store(
      _ secret: borrowing SecretBytes,
      for identifier: SecretIdentifier,
      metadata: SecretMetadata?
    ) throws(SecretError) { try transaction.store(secret, for: identifier, metadata: metadata) }
    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      try transaction.remove(identifier)
    }
  }

  /// A transaction whose list is that of its beginning.
  private struct Forgetful: SecretTransaction {
    let transaction: any SecretTransaction
    let items: [SecretItem]
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
      _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
    ) throws(SecretError) { try transaction.store(secret, for: identifier, metadata: metadata) }
    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      try transaction.remove(identifier)
    }
  }

  /// A transaction that makes the last change of each secret.
  private final class LastChanges: SecretTransaction {
    let transaction: any SecretTransaction
    private var changes: [SecretIdentifier: SharedSecret?] = [:]
    init(transaction: any SecretTransaction) { self.transaction = transaction }
    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      guard let change = changes[identifier] else { return try transaction.lookUp(identifier) }
      return change?.bytes.copy()
    }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try transaction.item(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try transaction.items(inService: service)
    }
    func store(
      _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
    ) throws(SecretError) { changes[identifier] = .some(SharedSecret(secret.copy())) }
    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      changes[identifier] = .some(nil)
      return true
    }
    func make() throws(SecretError) {
      for (identifier, change) in changes {
        if let change {
          try transaction.store(change.bytes, for: identifier, metadata: nil)
        } else {
          try transaction.remove(identifier)
        }
      }
    }
  }
}
