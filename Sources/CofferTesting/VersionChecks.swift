internal import CofferCore
internal import FoundationEssentials

extension Check {
  static let versionChecks: [Check] = [
    Check(name: "versions-are-listed-newest-first", features: .versions) { context, backend, a in
      let b = try context.identifier("b")
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

    Check(name: "version-numbers-are-stable", features: .versions) { context, backend, a in
      let b = try context.identifier("b")
      var known: [Int] = []
      let changes: [(String, () throws -> Void)] = [
        ("a store", { try context.store("1", a) }),
        ("an overwrite", { try context.store("2", a) }),
        ("a store of another secret", { try context.store("3", b) }),
        ("a removal", { try backend.remove(a) }),
        ("the purge of another secret", { try backend.erase(b) }),
        ("a store after a removal", { try context.store("4", a) }),
      ]
      for (name, change) in changes {
        try change()
        let numbers = try backend.versions(of: a).map(\.number)
        try context.expect(
          Array(numbers.suffix(known.count)), toBe: known, "the numbers of the versions before \(name)")
        known = numbers
      }
      try backend.erase(a)
      try context.store("5", a)
      let number = try backend.versions(of: a).first?.number ?? .min
      try context.expect(
        known.allSatisfy { $0 < number }, "the number of a version that was stored after a purge",
        expected: "a number above those before the purge", found: "\(number) after \(known)")
    },

    Check(name: "version-dates-are-those-of-the-changes", features: .versions) { context, backend, a in
      var known: [Date] = []
      for change in [1, 2, nil, 3] {
        if let change { try context.store("\(change)", a) } else { try backend.remove(a) }
        let versions = try backend.versions(of: a)
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

    Check(name: "versions-keep-their-metadata", features: .versions) { context, backend, a in
      let other = context.other
      try context.store("1", a, context.sample)
      let created = try context.metadata(a).created
      try context.store("2", a, other)
      let item = try context.metadata(a)
      try context.expect(
        try backend.versions(of: a).first?.metadata == item, "the metadata of the current version",
        expected: "the same as item returns", found: "other metadata")
      try backend.remove(a)
      let metadata = try backend.versions(of: a).map(\.metadata)
      try context.expect(metadata.count, toBe: 3, "the number of versions, after a removal")
      try context.expect(metadata[0] == SecretMetadata(), "the metadata of a removal", expected: "none", found: "some")
      try context.expectMetadata(other, in: metadata[1], "an earlier version")
      try context.expectMetadata(context.sample, in: metadata[2], "an earlier version that had other metadata")
      try context.expectSecond(created, metadata[2].created, "“created” of an earlier version")
    },

    Check(name: "lookup-of-a-version", features: .versions) { context, backend, a in
      let b = try context.identifier("b")
      // Each value has its own size, so that no value can be mistaken for another.
      let values = [pattern(5000), [], pattern(1)]
      for value in values { try context.store(value, a) }
      try context.store(["1", "2", "3", "4", "5"], in: b)
      let versions = try backend.versions(of: a)
      try context.expect(versions.count, toBe: 3, "the number of versions, after three stores")
      for (version, value) in zip(versions, values.reversed()) {
        try context.expect(
          try backend.secret(a, version: version.number)?.value.array(), toBe: value, "lookUp of a version")
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
        try backend.secret(a, version: numbers[0])?.value.array(), toBe: values[2],
        "lookUp of the version that was current before a removal")
    },

    Check(name: "history-is-not-among-the-secrets", features: .versions) { context, backend, _ in
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
      try context.expectHistory([nil, "3", "2", "1"], removed, "after the removal of a secret that was removed before")
    },

    Check(name: "transaction-makes-versions", features: .versions) { context, backend, a in
      let b = try context.identifier("b")
      try context.store(["0"], in: a, b)
      try context.cancelTransaction { transaction throws(SecretError) in
        try transaction.store("never", a)
        try transaction.remove(b)
      }
      try context.expectHistory(["0"], a, "after a transaction whose closure threw")
      try context.expectHistory(["0"], b, "after a transaction whose closure threw")
      try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store("1", a)
        try transaction.store("2", a)
        try transaction.remove(a)
        try transaction.store("3", a)
        try transaction.store("1", b)
        try transaction.remove(b)
      }
      try context.expectHistory(["3", nil, "2", "1", "0"], a, "after a transaction with four changes of the secret")
      try context.expectHistory([nil, "1", "0"], b, "after a transaction that overwrote and removed the secret")
    },

    Check(name: "erase-in-a-transaction", features: .versions) { context, backend, a in
      let (b, removed) = try context.identifiers("b", "removed")
      try context.store(["1", "2"], in: a, b, removed)
      try backend.remove(removed)
      try context.cancelTransaction { transaction throws(SecretError) in
        for identifier in [a, b, removed] { try transaction.erase(identifier) }
      }
      try context.expectHistory(["2", "1"], a, "after an erasure in a transaction whose closure threw")
      try context.expectHistory([nil, "2", "1"], removed, "after an erasure in a transaction whose closure threw")
      let never = try context.identifier("never")
      let (erased, left) = try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store("3", b)
        var erased: [Bool] = []
        for identifier in [a, b, removed, never] { erased.append(try transaction.erase(identifier)) }
        let left = [
          try transaction.item(a) == nil, try transaction.versions(of: a).isEmpty,
          try transaction.restore(a) == nil, try !transaction.remove(b),
          try transaction.removedItems(inService: context.service).isEmpty,
        ]
        try transaction.store("4", a)
        try transaction.store("5", a)
        return (erased, left)
      }
      try context.expect(erased, toBe: [true, true, true, false], "erase, in a transaction")
      try context.expect(left, toBe: [true, true, true, true, true], "what a transaction sees of erased secrets")
      try context.expectHistory(["5", "4"], a, "after a transaction that erased the secret and then stored it twice")
      try context.expectHistory([], b, "after a transaction that stored the secret and then erased it")
      try context.expectHistory([], removed, "after the erasure of a removed secret")
    },

    Check(name: "versions-in-a-transaction", features: .versions) { context, backend, a in
      let b = try context.identifier("b")
      try context.store(["1", "2"], in: a, b)
      try backend.remove(b)
      let (kinds, values, removed) = try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store("3", a)
        let versions = try transaction.versions(of: a)
        var values: [[UInt8]?] = []
        for version in versions {
          values.append(try transaction.secret(a, version: version.number)?.value.array())
        }
        let removed = try transaction.removedItems(inService: context.service).map(\.identifier)
        try transaction.restore(b)
        return (versions.map(\.kind), values, removed)
      }
      try context.expect(kinds, toBe: [.current, .earlier, .earlier], "the versions, in a transaction")
      try context.expect(
        values.map { $0 ?? [] }, toBe: ["3", "2", "1"].map { Array($0.utf8) },
        "their values, in a transaction")
      try context.expect(removed, toBe: [b], "the removed secrets, in a transaction")
      try context.expectHistory(["2", nil, "2", "1"], b, "after restore in a transaction")
    },

    Check(name: "versions-inside-a-transaction-are-a-conflict", features: .versions) { context, backend, a in
      try context.store(["1", "2"], in: a)
      let number = try backend.versions(of: a).last?.number ?? 0
      try context.expectConflicts([
        ("versions", { _ = try backend.versions(of: a) }),
        ("secret(_:version:)", { _ = try backend.secret(a, version: number) }),
        ("removedItems", { _ = try backend.removedItems(inService: context.service) }),
        ("erase", { try backend.erase(a) }),
        ("restore", { try backend.restore(a) }),
      ])
      try context.expectHistory(["2", "1"], a, "after calls inside the backend's own transaction")
    },
  ]
}

extension ConformanceContext {
  /// Expects these versions of a secret, newest first, and the value of the newest one as that of the secret. `nil`
  /// stands for a removal.
  func expectHistory(_ expected: [String?], _ identifier: SecretIdentifier, _ situation: String) throws {
    try expectValue((expected.first ?? nil).map { Array($0.utf8) }, identifier, situation)
    let situation = "the versions, \(situation)"
    let versions = try backend.versions(of: identifier)
    let kinds = expected.enumerated().map { index, value -> SecretVersion.Kind in
      value == nil ? .removal : index == 0 ? .current : .earlier
    }
    func text(_ kinds: [SecretVersion.Kind]) -> String {
      kinds.isEmpty ? "none" : kinds.map { "\($0)" }.joined(separator: ", ")
    }
    try expect(versions.map(\.kind) == kinds, situation, expected: text(kinds), found: text(versions.map(\.kind)))
    try expect(
      zip(versions, versions.dropFirst()).allSatisfy { $0.number > $1.number }, situation,
      expected: "descending numbers", found: "\(versions.map(\.number))")
    for (version, value) in zip(versions, expected) {
      try expect(
        try backend.secret(identifier, version: version.number)?.value.array(),
        toBe: value.map { Array($0.utf8) }, "lookUp of one of \(situation)")
    }
  }

  /// Expects the backend to have no value for these numbers. `description` follows “lookUp of a version” in a failure.
  func expectNoVersions(_ numbers: [Int], of identifier: SecretIdentifier, _ description: String) throws {
    for number in numbers {
      try expect(
        try backend.secret(identifier, version: number)?.value.array(), toBe: nil,
        "lookUp of a version \(description)")
    }
  }
}
