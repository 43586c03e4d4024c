import CofferCore
import CofferTestSupport
import Foundation
import Synchronization

/// A backend that breaks one rule of the contract.
final class BrokenBackend: SecretBackend {
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

  var features: SecretFeatures { good.features }

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

  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    guard let value = try lookUp(identifier), let item = try item(identifier) else { return nil }
    return Secret(identifier, value: value, metadata: item.metadata)
  }

  func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    var last = SecretBytes("")
    for item in try items(inService: service) {
      guard let secret = try secret(item.identifier) else { continue }
      let value = fault == .mixesValuesInLists ? last : secret.value
      let metadata = fault == .losesMetadataInLists ? SecretMetadata() : secret.metadata
      try body(Secret(item.identifier, value: value, metadata: metadata))
      last = secret.value
    }
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
      return try good.secret(identifier, version: earlier.number)?.value
    }
    return try good.lookUp(map(identifier))
  }

  func store(
    _ secret: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    let identifier = try map(identifier)
    var bytes = secret.array()
    var given = metadata.replacement
    var history = history
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
        try good.store(SecretBytes([1]), for: identifier)
        throw SecretError(.tooLarge, "Too large.")
      }
    case .dropsTooLargeSilently: bytes = Array(bytes.prefix(MemoryBackend.maximumSecretSize))
    case .reportsSuccessWithoutStoring: return
    case .keepsTheFirstValue: if try good.lookUp(identifier) != nil { return }
    case .forgetsMetadataOnOverwrite: given = given ?? SecretMetadata()
    case .keepsOldMetadata where try good.item(identifier) != nil:
      return try good.store(secret, for: identifier, metadata: .keep, history: history)
    case .keepsOldExpiry where given == nil:
      return try good.store(secret, for: identifier, metadata: .keep, history: history)
    case .ignoresTheHistoryOfStores: history = .kept
    case .forgetsThatASecretHasNoHistory: if history == .unchanged { history = .kept }
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
      do throws(SecretError) { try given?.validate() } catch { given = SecretMetadata() }
    case .remembersRemovedMetadata: given = given ?? removed.withLock { $0[identifier] }
    case .secretInError:
      do throws(SecretError) {
        return try good.store(secret, for: identifier, metadata: metadata, history: history)
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
      return try good.store(secret, for: identifier, metadata: metadata, history: history)
    case .readsHalfWritten:
      try good.store(
        SecretBytes(Array(bytes.prefix(bytes.count / 2))),
        for: identifier, metadata: metadata
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
        try good.store(SecretBytes(bytes), for: second)
      }
    case .equalValuesAreOneVersion:
      if try good.lookUp(identifier)?.array() == bytes { return }
    case .storeKeepsNoHistory:
      return try good.storeWithoutHistory(secret, for: identifier, metadata: given)
    case .storeAfterRemovalForgetsHistory where try good.item(identifier) == nil:
      return try good.storeWithoutHistory(secret, for: identifier, metadata: given)
    case .lowerLimitDropsLater: try good.setHistoryLimit(limit.withLock { $0 })
    case .tellsNotOfStoresAfterRemovals where try good.versions(of: identifier).first?.kind == .removal: break
    case .tellsNotOfStoresAfterRemovals, .tellsNotOfErasures:
      tap.send(SecretChange(identifier))
    default: break
    }
    try good.store(
      SecretBytes(bytes), for: identifier, metadata: given.map { .replace($0) } ?? metadata, history: history)
  }

  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
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
    case .ignoresTheHistoryOfRemovals: return try good.remove(identifier, history: .kept)
    default: break
    }
    return try good.remove(identifier, history: history)
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
    case .tellsNotOfStoresAfterRemovals, .tellsNotOfErasures:
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

  // MARK: Transactions

  func transaction<R, E: Error>(
    _ body: (any SecretTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    switch fault {
    case .transactionIsNotUndone, .transactionsInterleave, .transactionIsSeenInParts,
      .tellsOfGivenUpTransactions:
      if fault == .transactionIsSeenInParts { turn.lock() }
      defer { if fault == .transactionIsSeenInParts { turn.unlock() } }
      return Result { () throws(E) in
        try body(Direct(base: good, pause: fault == .transactionIsSeenInParts))
      }
    case .transactionSwallowsErrors:
      let result = try good.transaction { transaction throws(SecretError) in
        Result { () throws(E) in try body(transaction) }
      }
      return try result.get()
    case .transactionIsBlind:
      return try good.transaction { transaction throws(E) in try body(Blind(base: transaction)) }
    case .transactionListsThePast:
      let items = try good.items(inService: nil)
      return try good.transaction { transaction throws(E) in
        try body(Forgetful(base: transaction, items: items))
      }
    case .transactionMakesOneVersion:
      return try good.transaction { transaction throws(E) in
        let last = LastChanges(base: transaction)
        let result = try body(last)
        try? last.make()
        return result
      }
    case .transactionsHaveNoVersions:
      return try good.transaction { transaction throws(E) in
        try body(WithoutVersions(base: transaction))
      }
    case .givenUpTransactionsLeaveVersions:
      let result = try good.transaction(body)
      if case .failure = result {
        for secret in try good.secrets() { try good.store(secret.value, for: secret.identifier) }
      }
      return result
    case .nestedUseIsAllowed, .nestedUseHangs, .nestedVersionsAreAllowed:
      isInTransaction.withLock { $0 = true }
      defer { isInTransaction.withLock { $0 = false } }
      return try good.transaction(body)
    case .eraseKeepsVersions, .eraseKeepsTheSecret, .eraseIgnoresRemoved, .eraseAlwaysSaysTrue,
      .eraseDropsOthers, .eraseIsNotUndone, .erasedIsListedAsRemoved:
      var erased: [SecretIdentifier] = []
      let result = try good.transaction { transaction throws(E) in
        let erasing = Erasing(transaction, of: self)
        defer { erased = erasing.erased }
        return try body(erasing)
      }
      if case .failure = result, fault == .eraseIsNotUndone {
        for identifier in erased { try good.erase(identifier) }
      }
      return result
    default: return try good.transaction(body)
    }
  }

  func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    let identifier = try map(identifier)
    return try withTransaction { transaction throws(SecretError) in try transaction.erase(identifier) }
  }

  // MARK: Versions

  func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    if fault == .nestedVersionsAreAllowed, isInTransaction.withLock({ $0 }) { return [] }
    let versions = try good.versions(of: identifier)
    switch fault {
    case .versionsAreOldestFirst: return versions.reversed()
    case .replacedVersionsAreCurrent:
      return versions.map { $0.kind == .earlier ? $0.with(kind: .current) : $0 }
    case .removalsAreNoVersions: return versions.filter { $0.kind != .removal }
    case .versionsAreThoseOfTheService:
      var all: [SecretVersion] = []
      for item in try good.items(inService: identifier.service) {
        all += try good.versions(of: item.identifier)
      }
      return all.sorted { $0.number > $1.number }
    case .currentVersionIsAlsoEarlier:
      let current = versions.filter { $0.kind == .current }
      return current + current.map { $0.with(kind: .earlier) } + versions.dropFirst(current.count)
    case .numbersArePositions, .numbersAreUsedAgain:
      return versions.indices.map { versions[$0].with(number: number(of: $0, in: versions)) }
    case .versionsAreOfTheFuture: return versions.map { $0.with(date: Date().addingTimeInterval(3600)) }
    case .versionsAreDatedWhenListed: return versions.map { $0.with(date: Date()) }
    case .versionsAreDatedWhenReplaced:
      return versions.indices.map { versions[$0].with(date: versions[max(0, $0 - 1)].date) }
    case .versionsAreOf1970: return versions.map { $0.with(date: Date(timeIntervalSince1970: 0)) }
    case .earlierMetadataIsLost:
      return versions.map { $0.kind == .earlier ? $0.with(metadata: SecretMetadata()) : $0 }
    case .earlierMetadataIsTheNewest:
      let newest = versions.first { $0.kind != .removal }?.metadata ?? SecretMetadata()
      return versions.map { $0.kind == .earlier ? $0.with(metadata: newest) : $0 }
    case .currentVersionHasNoMetadata:
      return versions.map { $0.kind == .current ? $0.with(metadata: SecretMetadata()) : $0 }
    case .removalHasMetadata:
      return versions.map { $0.kind == .removal ? $0.with(metadata: SecretMetadata(label: "removed")) : $0 }
    case .restoredVersionIsMoved:
      let current = try good.lookUp(identifier)?.array()
      var others: [SecretVersion] = []
      for version in versions {
        let value = try good.secret(identifier, version: version.number)?.value.array()
        if version.kind != .earlier || value != current { others.append(version) }
      }
      return others
    case .limitCountsRemovals: return Array(versions.prefix(try good.historyLimit().versions + 1))
    case .lowerLimitHidesVersions:
      let count = limit.withLock { $0.versions }
      return count == 0 && versions.first?.kind == .removal ? [] : Array(versions.prefix(count + 1))
    default: return versions
    }
  }

  /// The number that a fault gives to the version at `index`.
  private func number(of index: Int, in versions: [SecretVersion]) -> Int {
    fault == .numbersArePositions ? 1000 - index : versions.count - index
  }

  func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    let versions = try good.versions(of: identifier)
    switch fault {
    case .numbersArePositions, .numbersAreUsedAgain:
      guard let index = versions.indices.first(where: { number(of: $0, in: versions) == version }) else {
        return nil
      }
      return try good.secret(identifier, version: versions[index].number)
    case .versionLookUpReturnsTheNewest:
      return try versions.contains { $0.number == version } ? good.secret(identifier) : nil
    case .versionLookUpIgnoresTheName:
      for item in try good.items(inService: identifier.service) {
        if let secret = try good.secret(item.identifier, version: version) { return secret }
      }
    case .versionLookUpThrowsIfAbsent:
      if !versions.contains(where: { $0.number == version }) { throw SecretError(.io, "There is none.") }
    case .removalHasAValue:
      if versions.contains(where: { $0.number == version && $0.kind == .removal }) {
        return Secret(identifier, value: SecretBytes(""), metadata: SecretMetadata())
      }
    case .versionsEndWithTheSecret: if try good.item(identifier) == nil { return nil }
    case .lowerLimitHidesVersions:
      guard try self.versions(of: identifier).contains(where: { $0.number == version }) else { return nil }
    default: break
    }
    return try good.secret(identifier, version: version)
  }

  func noteRemoval(of identifier: SecretIdentifier) {
    removals.withLock { $0.append(RemovedSecret(identifier: identifier, removed: Date())) }
  }

  func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    let removed = try good.removedItems(inService: service)
    switch fault {
    case .removedIsUnsorted: return removed.reversed()
    case .removedIgnoresService: return try good.removedItems(inService: nil)
    case .removedByPrefix:
      return try good.removedItems(inService: nil).filter { $0.identifier.service.hasPrefix(service ?? "") }
    case .removedIsDatedWhenListed:
      return removed.map { RemovedSecret(identifier: $0.identifier, removed: Date()) }
    case .noneStillListsRemoved where try good.historyLimit().versions > 0: return removed
    case .removedStaysAfterAStore, .erasedIsListedAsRemoved, .noneStillListsRemoved:
      let noted = removals.withLock { $0 }.filter { note in
        note.identifier.service == service ?? note.identifier.service
          && !removed.contains { $0.identifier == note.identifier }
      }
      return (removed + noted).sorted { $0.identifier < $1.identifier }
    default: return removed
    }
  }

  func setHistoryVersions(_ count: Int) throws(SecretError) {
    guard let new = HistoryLimit(versions: count, days: 90) else { return }
    var versions = count
    limit.withLock { $0 = new }
    switch fault {
    case .limitIsNotKept, .lowerLimitDropsLater, .lowerLimitHidesVersions: return
    case .limitIsOffByOne: versions += 1
    case .noneKeepsOne: versions = max(1, versions)
    default: break
    }
    try good.setHistoryLimit(HistoryLimit(versions: versions, days: new.days) ?? new)
  }
}

extension BrokenBackend: CustomStringConvertible {}
