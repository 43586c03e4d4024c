import CofferCore
import CofferTestSupport
import Foundation
import Synchronization

/// A backend that breaks one rule of the contract.
final class BrokenBackend: TransactionalSecretBackend, ObservableSecretBackend {
  enum Fault: String, CaseIterable, Sendable {
    case none
    case trimsANewline, losesEmptyValues, stopsAtNUL, normalisesValues, normalisesNames,
      joinsServiceAndAccount
    case foldsCase, cutsLongNames, refusesLargeValues, takesTooLargeValues, dropsTooLargeSilently
    case storesTooLargeAndThrows
    case reportsSuccessWithoutStoring, duplicatesOnOverwrite, keepsTheFirstValue
    case removeAlwaysSaysTrue, removeDoesNotRemove, removeThrowsWhenAbsent
    case forgetsMetadataOnOverwrite, keepsOldMetadata, resetsCreation, ignoresGivenCreation, losesLabel
    case losesExpiry, losesAttributes, acceptsInvalidMetadata, hidesExpired, setsNoTimes,
      remembersRemovedMetadata
    case listIsUnsorted, listIgnoresService, listByPrefix, itemDiffersFromList
    case secretInError, secretInDescription
    case losesConcurrentWrites, readsHalfWritten, missesDuringOverwrite
    case tellsNoChange, tellsTwice, tellsOneSubscriber, tellsOfNothing, tellsOfGivenUpTransactions
    case transactionIsNotUndone, transactionIsBlind, transactionOutlivesItself, transactionSwallowsErrors
    case nestedUseIsAllowed, nestedUseHangs, transactionsInterleave, transactionIsSeenInParts
  }

  let fault: Fault
  private let good = MemoryBackend()
  private let raw: MemoryBackend
  private let tap = ChangeBroadcast()
  private let isInTransaction = Mutex(false)
  private let removed = Mutex<[SecretIdentifier: SecretMetadata]>([:])
  private let subscriptions = Atomic(0)
  private let turn = NSRecursiveLock()

  init(_ fault: Fault) {
    self.fault = fault
    raw = good
  }

  var description: String { fault == .secretInDescription ? "canary-5up3r-s3cr3t-8d1f" : "broken" }

  private func map(_ identifier: SecretIdentifier) throws(SecretError) -> SecretIdentifier {
    var (service, account) = (identifier.service, identifier.account)
    switch fault {
    case .normalisesNames:
      (service, account) = (
        service.precomposedStringWithCanonicalMapping, account.precomposedStringWithCanonicalMapping
      )
    case .joinsServiceAndAccount:
      let joined = (service + "/" + account).split(separator: "/", maxSplits: 1).map(String.init)
      (service, account) = (joined[0], joined.count > 1 && !joined[1].isEmpty ? joined[1] : "/")
    case .foldsCase: account = account.lowercased()
    case .cutsLongNames:
      if account.utf8.count > 512 { account = String(decoding: account.utf8.prefix(512), as: UTF8.self) }
    default: break
    }
    return try SecretIdentifier(service: service, account: account)
  }

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    if fault == .nestedUseIsAllowed || fault == .nestedUseHangs, isInTransaction.withLock({ $0 }) {
      if fault == .nestedUseHangs { Thread.sleep(forTimeInterval: 3600) }
      return nil
    }
    if fault == .hidesExpired, let expires = try good.item(identifier)?.metadata.expires, expires < Date() {
      return nil
    }
    guard let secret = try good.lookUp(map(identifier)) else { return nil }
    return secret
  }

  func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    let identifier = try map(identifier)
    var bytes = secret.array()
    var given = metadata
    switch fault {
    case .trimsANewline: if bytes.last == 10 { bytes.removeLast() }
    case .losesEmptyValues: if bytes.isEmpty { return _ = try good.remove(identifier) }
    case .stopsAtNUL: bytes = Array(bytes.prefix { $0 != 0 })
    case .normalisesValues:
      if let text = String(validating: bytes, as: UTF8.self) {
        bytes = Array(text.precomposedStringWithCanonicalMapping.utf8)
      }
    case .refusesLargeValues:
      if bytes.count > 65_536 { throw SecretError(.tooLarge, "Above a cap that was not named.") }
    case .takesTooLargeValues: if bytes.count > MemoryBackend.maximumSecretSize { return }
    case .storesTooLargeAndThrows:
      if bytes.count > MemoryBackend.maximumSecretSize {
        try good.store(SecretBytes(copying: [1]), for: identifier)
        throw SecretError(.tooLarge, "Too large.")
      }
    case .dropsTooLargeSilently: bytes = Array(bytes.prefix(MemoryBackend.maximumSecretSize))
    case .reportsSuccessWithoutStoring: return
    case .keepsTheFirstValue: if try good.lookUp(identifier) != nil { return }
    case .forgetsMetadataOnOverwrite: given = given ?? SecretMetadata()
    case .keepsOldMetadata: if try good.item(identifier) != nil { given = nil }
    case .resetsCreation:
      if try good.item(identifier) != nil {
        let old = try good.item(identifier)?.metadata
        given = given ?? old
        given?.created = Date(timeIntervalSince1970: 5)
        try good.remove(identifier)
      }
    case .ignoresGivenCreation: given?.created = nil
    case .losesLabel:
      try given?.validate()
      given?.label = nil
    case .losesExpiry: given?.expires = nil
    case .losesAttributes: given?.attributes = [:]
    case .acceptsInvalidMetadata:
      do throws(SecretError) { try given?.validate() } catch { given = nil }
    case .remembersRemovedMetadata: given = given ?? removed.withLock { $0[identifier] }
    case .secretInError:
      do throws(SecretError) {
        return try good.store(secret, for: identifier, metadata: metadata)
      } catch {
        throw SecretError(
          error.code,
          "Could not store “\(String(decoding: bytes.prefix(64), as: UTF8.self))”."
        )
      }
    case .losesConcurrentWrites:
      // Of two concurrent stores, the second is lost.
      guard turn.try() else { return }
      defer { turn.unlock() }
      Thread.sleep(forTimeInterval: 0.0005)
      return try good.store(secret, for: identifier, metadata: metadata)
    case .readsHalfWritten:
      try good.store(
        SecretBytes(copying: Array(bytes.prefix(bytes.count / 2))),
        for: identifier,
        metadata: metadata
      )
      Thread.sleep(forTimeInterval: 0.0005)
    case .missesDuringOverwrite:
      try good.remove(identifier)
      Thread.sleep(forTimeInterval: 0.0005)
    case .nestedUseIsAllowed: if isInTransaction.withLock({ $0 }) { return }
    case .duplicatesOnOverwrite:
      if try good.lookUp(identifier) != nil {
        let second = try SecretIdentifier(
          service: identifier.service,
          account: identifier.account + "\u{200B}"
        )
        try good.store(SecretBytes(copying: bytes), for: second)
      }
    default: break
    }
    try good.store(SecretBytes(copying: bytes), for: identifier, metadata: given)
  }

  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    let identifier = try map(identifier)
    switch fault {
    case .removeDoesNotRemove: return try good.lookUp(identifier) != nil
    case .removeAlwaysSaysTrue:
      try good.remove(identifier)
      return true
    case .removeThrowsWhenAbsent:
      if try good.remove(identifier) { return true }
      throw SecretError(.io, "There was none.")
    case .remembersRemovedMetadata:
      let item = try good.item(identifier)
      removed.withLock { $0[identifier] = item?.metadata }
    case .tellsOfNothing: tap.send(SecretChange(identifier))
    default: break
    }
    return try good.remove(identifier)
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    var items = try good.items(inService: nil)
    switch fault {
    case .listIgnoresService: return items
    case .listByPrefix: return items.filter { $0.identifier.service.hasPrefix(service ?? "") }
    case .setsNoTimes: items = items.map { SecretItem(identifier: $0.identifier, metadata: SecretMetadata()) }
    default: break
    }
    if let service { items = items.filter { $0.identifier.service.utf8.elementsEqual(service.utf8) } }
    if fault == .listIsUnsorted { items.sort { $0.identifier.account < $1.identifier.account } }
    return items
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    let identifier = try map(identifier)
    if fault == .itemDiffersFromList { return SecretItem(identifier: identifier, metadata: SecretMetadata()) }
    return try items(inService: identifier.service).first { $0.identifier == identifier }
  }

  func changes() -> AsyncStream<SecretChange> {
    let number = subscriptions.add(1, ordering: .relaxed).newValue
    switch fault {
    case .tellsNoChange: return AsyncStream { _ in }
    case .tellsOneSubscriber where number > 1: return AsyncStream { _ in }
    case .tellsTwice, .tellsOfNothing, .tellsOfGivenUpTransactions:
      let (merged, continuation) = AsyncStream.makeStream(of: SecretChange.self)
      let (own, others) = (good.changes(), tap.subscribe())
      let isDoubled = fault == .tellsTwice
      Task {
        for await change in own {
          continuation.yield(change)
          if isDoubled { continuation.yield(change) }
        }
      }
      Task { for await change in others { continuation.yield(change) } }
      return merged
    default: return good.changes()
    }
  }

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
    case .nestedUseIsAllowed, .nestedUseHangs:
      isInTransaction.withLock { $0 = true }
      defer { isInTransaction.withLock { $0 = false } }
      return try good.transaction(body)
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
    func store(
      _ secret: borrowing SecretBytes,
      for identifier: SecretIdentifier,
      metadata: SecretMetadata?
    ) throws(SecretError) { try transaction.store(secret, for: identifier, metadata: metadata) }
    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      try transaction.remove(identifier)
    }
  }
}

extension BrokenBackend: CustomStringConvertible {}
