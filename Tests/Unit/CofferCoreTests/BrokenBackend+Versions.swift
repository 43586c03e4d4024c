import CofferCore
import CofferTestSupport
import Foundation
import Synchronization

/// The faults of a backend with history.
extension BrokenBackend {
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
        let value = try good.lookUp(identifier, version: version.number)?.array()
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

  func lookUp(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> SecretBytes? {
    let versions = try good.versions(of: identifier)
    switch fault {
    case .numbersArePositions, .numbersAreUsedAgain:
      guard let index = versions.indices.first(where: { number(of: $0, in: versions) == version }) else {
        return nil
      }
      return try good.lookUp(identifier, version: versions[index].number)
    case .versionLookUpReturnsTheNewest:
      return try versions.contains { $0.number == version } ? good.lookUp(identifier) : nil
    case .versionLookUpIgnoresTheName:
      for item in try good.items(inService: identifier.service) {
        if let value = try good.lookUp(item.identifier, version: version) { return value.copy() }
      }
    case .versionLookUpThrowsIfAbsent:
      if !versions.contains(where: { $0.number == version }) { throw SecretError(.io, "There is none.") }
    case .removalHasAValue:
      if versions.contains(where: { $0.number == version && $0.kind == .removal }) {
        return SecretBytes(copying: "")
      }
    case .versionsEndWithTheSecret: if try good.item(identifier) == nil { return nil }
    case .lowerLimitHidesVersions:
      guard try self.versions(of: identifier).contains(where: { $0.number == version }) else { return nil }
    default: break
    }
    return try good.lookUp(identifier, version: version)
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
    case .removedStaysAfterAStore, .purgedIsListedAsRemoved, .noneStillListsRemoved:
      let noted = removals.withLock { $0 }.filter { note in
        note.identifier.service == service ?? note.identifier.service
          && !removed.contains { $0.identifier == note.identifier }
      }
      return (removed + noted).sorted { $0.identifier < $1.identifier }
    default: return removed
    }
  }

  /// In several steps, so that the faults of reading and storing show.
  func restore(
    _ identifiers: [SecretIdentifier],
    choosing choose: (SecretIdentifier, [SecretVersion]) throws(SecretError) -> Int?
  ) throws(SecretError) -> [SecretIdentifier: SecretVersion] {
    var restored: [SecretIdentifier: SecretVersion] = [:]
    for identifier in identifiers {
      let versions = try versions(of: identifier)
      guard let number = try choose(identifier, versions),
        let version = versions.first(where: { $0.number == number && $0.kind == .earlier }),
        let value = try lookUp(identifier, version: number)
      else { continue }
      try store(value, for: identifier, metadata: version.metadata)
      restored[identifier] = version
    }
    return restored
  }

  func historyLimit() throws(SecretError) -> HistoryLimit {
    switch fault {
    case .limitIsOffByOne, .lowerLimitDropsLater, .lowerLimitHidesVersions, .noneKeepsOne:
      return limit.withLock { $0 }
    default: return try good.historyLimit()
    }
  }

  func setHistoryLimit(_ new: HistoryLimit) throws(SecretError) {
    var versions = new.versions
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

extension BrokenBackend {
  /// A transaction with a fault of `purge`.
  final class Purging: SecretTransaction {
    private let backend: BrokenBackend
    private let transaction: any SecretTransaction
    private var removed: Set<SecretIdentifier> = []
    private(set) var purged: [SecretIdentifier] = []

    init(_ transaction: any SecretTransaction, of backend: BrokenBackend) {
      (self.transaction, self.backend) = (transaction, backend)
    }

    func purge(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      purged.append(identifier)
      switch backend.fault {
      case .purgeKeepsVersions, .purgeOutlivesTheTransaction: return true
      case .purgeRemovesTheSecret: try transaction.remove(identifier)
      case .purgeIgnoresRemoved:
        let isThere = try transaction.item(identifier) != nil
        if !isThere && !removed.contains(identifier) { return false }
      case .purgeAlwaysSaysTrue:
        try transaction.purge(identifier)
        return true
      case .purgeDropsOthers:
        for item in try transaction.items(inService: identifier.service) {
          try transaction.purge(item.identifier)
        }
      case .purgedIsListedAsRemoved: backend.noteRemoval(of: identifier)
      default: break
      }
      return try transaction.purge(identifier)
    }

    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
      guard try transaction.remove(identifier) else { return false }
      removed.insert(identifier)
      return true
    }

    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      try transaction.lookUp(identifier)
    }
    func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
      try transaction.item(identifier)
    }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try transaction.items(inService: service)
    }
    func store(
      _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
    ) throws(SecretError) { try transaction.store(secret, for: identifier, metadata: metadata) }
  }
}

extension SecretVersion {
  /// The version with some of its parts replaced.
  fileprivate func with(
    number: Int? = nil, kind: Kind? = nil, date: Date? = nil, metadata: SecretMetadata? = nil
  ) -> SecretVersion {
    SecretVersion(
      number: number ?? self.number, kind: kind ?? self.kind, date: date ?? self.date,
      metadata: metadata ?? self.metadata)
  }
}
