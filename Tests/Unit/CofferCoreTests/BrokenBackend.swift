import CofferCore
import CofferTestSupport
import Foundation
import Synchronization

/// A backend that breaks one rule of the contract.
final class BrokenBackend: VersionedSecretBackend, ObservableSecretBackend {
  let fault: Fault
  let good = MemoryBackend()
  let tap = ChangeBroadcast()
  let isInTransaction = Mutex(false)
  /// The removals that a fault does not forget.
  let removals = Mutex<[RemovedSecret]>([])
  /// The limit that a fault reports.
  let limit = Mutex(HistoryLimit.standard)
  private let removed = Mutex<[SecretIdentifier: SecretMetadata]>([:])
  private let subscriptions = Atomic(0)
  let turn = NSRecursiveLock()

  init(_ fault: Fault) { self.fault = fault }

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
    if fault == .lookUpFallsBackToHistory, try good.item(identifier) == nil,
      let earlier = try good.versions(of: identifier).first(where: { $0.kind == .earlier })
    {
      return try good.lookUp(identifier, version: earlier.number)
    }
    return try good.lookUp(map(identifier))
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
    case .equalValuesAreOneVersion:
      if try good.lookUp(identifier)?.array() == bytes { return }
    case .storeKeepsNoHistory:
      return try good.storeWithoutHistory(secret, for: identifier, metadata: metadata)
    case .storeAfterRemovalForgetsHistory where try good.item(identifier) == nil:
      return try good.storeWithoutHistory(secret, for: identifier, metadata: metadata)
    case .lowerLimitDropsLater: try good.setHistoryLimit(limit.withLock { $0 })
    case .tellsNotOfStoresAfterRemovals where try good.versions(of: identifier).first?.kind == .removal: break
    case .tellsNotOfStoresAfterRemovals, .tellsNotOfPurges:
      tap.send(SecretChange(identifier))
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
    case .removedIsRemovedAgain where try good.item(identifier) == nil:
      return try !good.versions(of: identifier).isEmpty
    case .removedStaysAfterAStore, .noneStillListsRemoved: noteRemoval(of: identifier)
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
    case .itemsIncludeRemoved:
      items += try good.removedItems(inService: nil).map {
        SecretItem(identifier: $0.identifier, metadata: SecretMetadata())
      }
      items.sort { $0.identifier < $1.identifier }
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
    case .tellsNotOfStoresAfterRemovals, .tellsNotOfPurges:
      return tap.subscribe()
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
}

extension BrokenBackend: CustomStringConvertible {}
