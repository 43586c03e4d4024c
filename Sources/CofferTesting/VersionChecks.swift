internal import CofferCore
internal import FoundationEssentials

extension ConformanceCheck {
  /// The number of earlier versions that the backend must keep, so that the checks find theirs.
  private static let neededVersions = 5

  static func versioned(
    _ name: String,
    alsoOmittedBy omissions: SecretBackendConformance.Omissions = [],
    _ body: @escaping @Sendable (ConformanceContext, any VersionedSecretBackend) throws -> Void
  ) -> ConformanceCheck {
    ConformanceCheck(name: name, omittedBy: omissions.union(.versions)) {
      (context, backend: any VersionedSecretBackend) in
      let limit = try backend.historyLimit().versions
      try context.expect(
        limit >= neededVersions, "the history limit, before the check",
        expected: "at least \(neededVersions) versions", found: "\(limit)")
      try body(context, backend)
    }
  }

  static let versionChecks: [ConformanceCheck] = [
    versioned("versions-are-listed-newest-first") { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      try context.expectHistory([], a, "before any store")
      try context.store("1", a)
      try context.expectHistory(["1"], a, "after one store")
      try context.store(["2", "2", "3"], in: a)
      try context.store("other", b)
      try context.expectHistory(["3", "2", "2", "1"], a, "after four stores, two of them of one value")
      try context.expectHistory(["other"], b, "a secret beside one with four versions")
      try backend.remove(a)
      try context.expectHistory([nil, "3", "2", "2", "1"], a, "after a removal")
      try context.store("4", a)
      try context.expectHistory(["4", nil, "3", "2", "2", "1"], a, "after a removal and a store")
    },

    versioned("version-numbers-are-stable") { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      var known: [Int] = []
      let changes: [(String, () throws -> Void)] = [
        ("a store", { try context.store("1", a) }),
        ("an overwrite", { try context.store("2", a) }),
        ("a store of another secret", { try context.store("3", b) }),
        ("a removal", { try backend.remove(a) }),
        ("the purge of another secret", { try backend.removeWithHistory(b) }),
        ("a store after a removal", { try context.store("4", a) }),
      ]
      for (name, change) in changes {
        try change()
        let numbers = try backend.versions(of: a).map(\.number)
        try context.expect(
          Array(numbers.suffix(known.count)), toBe: known, "the numbers of the versions before \(name)")
        known = numbers
      }
      try backend.removeWithHistory(a)
      try context.store("5", a)
      let number = try backend.versions(of: a).first?.number ?? .min
      try context.expect(
        known.allSatisfy { $0 < number }, "the number of a version that was stored after a purge",
        expected: "a number above those before the purge", found: "\(number) after \(known)")
    },

    versioned("version-dates-are-those-of-the-changes") { context, backend in
      let identifier = try context.identifier("dated")
      var known: [Date] = []
      for change in [1, 2, nil, 3] {
        if let change { try context.store("\(change)", identifier) } else { try backend.remove(identifier) }
        let versions = try backend.versions(of: identifier)
        let situation = change == nil ? "after a removal" : "after a store"
        let (now, dates) = (Date().addingTimeInterval(1), versions.map(\.date))
        try context.expect(
          dates.allSatisfy { $0 <= now }, "the dates of the versions, \(situation)",
          expected: "no date in the future", found: "one")
        try context.expect(
          dates.suffix(known.count).elementsEqual(known), "the dates of the versions, \(situation)",
          expected: "the dates that they had before", found: "others")
        try context.expect(
          zip(dates, dates.dropFirst()).allSatisfy { $0 >= $1 }, "the dates of the versions, \(situation)",
          expected: "later dates for later versions", found: "another order")
        for version in versions {
          guard let modified = version.metadata.modified else { continue }
          try context.expect(
            abs(modified.timeIntervalSince(version.date)) < 1, "the date of a version, \(situation)",
            expected: "the time in “modified”", found: "another time")
        }
        known = dates
      }
    },

    versioned("versions-keep-their-metadata") { context, backend in
      let identifier = try context.identifier("described")
      let other = SecretMetadata(attributes: context.sample.attributes.isEmpty ? [:] : ["other": "1"])
      try context.store("1", identifier, context.sample)
      let created = try context.metadata(identifier).created
      try context.store("2", identifier, other)
      let item = try context.metadata(identifier)
      try context.expect(
        try backend.versions(of: identifier).first?.metadata == item, "the metadata of the current version",
        expected: "the same as item returns", found: "other metadata")
      try backend.remove(identifier)
      let metadata = try backend.versions(of: identifier).map(\.metadata)
      try context.expect(metadata.count, toBe: 3, "the number of versions, after a removal")
      try context.expect(
        metadata[0] == SecretMetadata(), "the metadata of a removal", expected: "none", found: "some")
      try context.expectMetadata(other, in: metadata[1], "an earlier version")
      try context.expectMetadata(
        context.sample, in: metadata[2], "an earlier version that had other metadata")
      try context.expectSecond(created, metadata[2].created, "“created” of an earlier version")
    },

    versioned("lookup-of-a-version") { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      // Sizes, so that a value cannot be mistaken for another.
      let values = [pattern(5000), [], pattern(1)]
      for value in values { try context.store(value, a) }
      try context.store(["1", "2", "3", "4", "5"], in: b)
      let versions = try backend.versions(of: a)
      try context.expect(versions.count, toBe: 3, "the number of versions, after three stores")
      for (version, value) in zip(versions, values.reversed()) {
        try context.expect(
          try backend.lookUp(a, version: version.number).array(), toBe: value, "lookUp of a version")
      }
      let numbers = versions.map(\.number)
      let others = try backend.versions(of: b).map(\.number).filter { !numbers.contains($0) }
      let largest = numbers.max() ?? 0
      let absent = (others + [largest + 1000, .max, 0, -1, .min]).filter { !numbers.contains($0) }
      try context.expectNoVersions(absent, of: a, "that there is not")
      try context.expectNoVersions(
        numbers, of: context.identifier("never"), "of another secret, for a name that was never stored")
      try backend.remove(a)
      let removal = try backend.versions(of: a).first
      try context.expect(removal?.kind, toBe: .removal, "the newest version, after a removal")
      try context.expectNoVersions([removal?.number ?? 0], of: a, "that is a removal")
      try context.expect(
        try backend.lookUp(a, version: numbers[0]).array(), toBe: values[2],
        "lookUp of the version that was current before a removal")
    },

    versioned("history-is-not-among-the-secrets") { context, backend in
      let (kept, removed) = try context.identifiers("kept", "removed")
      try context.store(["1", "2", "3"], in: kept, removed)
      try backend.remove(removed)
      try context.expectListed(["kept"], "with earlier versions and a removed secret")
      let own = try backend.items(inService: nil).map(\.identifier).filter(context.isOwn)
      try context.expect(own, toBe: [kept], "the list of all secrets, with a removed secret")
      try context.expectValue("3", kept, "with earlier versions")
      try context.expectValue(nil, removed, "after the removal of a secret with earlier versions")
      try context.expect(try backend.item(removed), toBe: nil, "item, after a removal")
      try context.expectRemoval(of: removed, toReturn: false, "of a removed secret with earlier versions")
      try context.expectHistory(
        [nil, "3", "2", "1"], removed, "after the removal of a secret that was removed before")
    },

    versioned("transaction-makes-versions", alsoOmittedBy: .transactions) { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      try context.store("0", a)
      try context.store("0", b)
      try context.cancelTransaction(of: backend) { transaction throws(SecretError) in
        try transaction.store("never", a)
        try transaction.remove(b)
      }
      try context.expectHistory(["0"], a, "after a transaction whose closure threw")
      try context.expectHistory(["0"], b, "after a transaction whose closure threw")
      try backend.transaction { transaction throws(SecretError) in
        try transaction.store("1", a)
        try transaction.store("2", a)
        try transaction.remove(a)
        try transaction.store("3", a)
        try transaction.store("1", b)
        try transaction.remove(b)
      }
      try context.expectHistory(
        ["3", nil, "2", "1", "0"], a, "after a transaction with four changes of the secret")
      try context.expectHistory(
        [nil, "1", "0"], b, "after a transaction that overwrote and removed the secret")
    },

    versioned("purge-in-a-transaction", alsoOmittedBy: .transactions) { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      let removed = try context.identifier("removed")
      try context.store(["1", "2"], in: a, b, removed)
      try backend.remove(removed)
      try context.cancelTransaction(of: backend) { transaction throws(SecretError) in
        for identifier in [a, b, removed] { try transaction.purge(identifier) }
      }
      try context.expectHistory(["2", "1"], a, "after a purge in a transaction whose closure threw")
      try context.expectHistory(
        [nil, "2", "1"], removed, "after a purge in a transaction whose closure threw")
      var finished: (any SecretTransaction)?
      let sample = context.sample
      let never = try context.identifier("never")
      let purged = try backend.transaction { transaction throws(SecretError) in
        finished = transaction
        let before = try transaction.purge(a)
        try transaction.store("3", a)
        try transaction.store(SecretBytes(copying: "3"), for: b, metadata: sample)
        return [
          before, try transaction.purge(b), try transaction.purge(removed), try transaction.purge(never),
        ]
      }
      try context.expect(purged, toBe: [true, true, true, false], "purge, in a transaction")
      try context.expectHistory(["3"], a, "after a transaction that purged the secret and then stored it")
      try context.expectHistory(["3"], b, "after a transaction that stored the secret and then purged it")
      try context.expectMetadata(sample, b, "after a transaction that stored the secret and then purged it")
      try context.expectHistory([], removed, "after the purge of a removed secret")
      try context.expectError([.conflict], "purge, on a transaction that has ended") {
        try finished?.purge(a)
      }
    },

    versioned("versions-inside-a-transaction-are-a-conflict", alsoOmittedBy: .transactions) {
      context, backend in
      let identifier = try context.identifier("a")
      try context.store(["1", "2"], in: identifier)
      let number = try backend.versions(of: identifier).last?.number ?? 0
      let limit = try backend.historyLimit()
      try context.expectConflicts([
        ("versions", { _ = try backend.versions(of: identifier) }),
        ("lookUp(_:version:)", { _ = try backend.lookUp(identifier, version: number) }),
        ("removedItems", { _ = try backend.removedItems(inService: context.service) }),
        (
          "storeWithoutHistory",
          { try backend.storeWithoutHistory(SecretBytes(copying: "x"), for: identifier, metadata: nil) }
        ),
        ("removeWithHistory", { try backend.removeWithHistory(identifier) }),
        ("restore", { try backend.restore(identifier) }),
        ("historyLimit", { _ = try backend.historyLimit() }),
        ("setHistoryLimit", { try backend.setHistoryLimit(limit) }),
      ])
      try context.expectHistory(["2", "1"], identifier, "after calls inside the backend's own transaction")
    },
  ]
}

extension ConformanceContext {
  /// Expects the backend to have these versions of a secret, newest first. `nil` stands for a removal.
  func expectHistory(_ expected: [String?], _ identifier: SecretIdentifier, _ situation: String) throws {
    guard let backend = backend as? any VersionedSecretBackend else { return }
    let situation = "the versions, \(situation)"
    let versions = try backend.versions(of: identifier)
    let kinds = expected.enumerated().map { index, value -> SecretVersion.Kind in
      value == nil ? .removal : index == 0 ? .current : .earlier
    }
    func text(_ kinds: [SecretVersion.Kind]) -> String {
      kinds.isEmpty ? "none" : kinds.map { "\($0)" }.joined(separator: ", ")
    }
    try expect(
      versions.map(\.kind) == kinds, situation, expected: text(kinds), found: text(versions.map(\.kind)))
    try expect(
      zip(versions, versions.dropFirst()).allSatisfy { $0.number > $1.number }, situation,
      expected: "descending numbers", found: "\(versions.map(\.number))")
    for (version, value) in zip(versions, expected) {
      try expect(
        try backend.lookUp(identifier, version: version.number).array(), toBe: value.map { Array($0.utf8) },
        "lookUp of one of \(situation)")
    }
  }

  /// Expects the backend to have no value for these numbers. `description` follows “lookUp of a version” in a failure.
  func expectNoVersions(_ numbers: [Int], of identifier: SecretIdentifier, _ description: String) throws {
    guard let backend = backend as? any VersionedSecretBackend else { return }
    for number in numbers {
      try expect(
        try backend.lookUp(identifier, version: number).array(), toBe: nil,
        "lookUp of a version \(description)")
    }
  }
}
