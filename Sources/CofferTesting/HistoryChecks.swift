internal import CofferCore

extension ConformanceCheck {
  static let historyChecks: [ConformanceCheck] = [
    versioned("restore-an-earlier-version") { context, backend in
      let identifier = try context.identifier("restored")
      try context.store("1", identifier, context.sample)
      try context.store("2", identifier)
      try context.store("3", identifier, SecretMetadata())
      try context.expect(try backend.restore(identifier), toBe: true, "restore")
      try context.expectValue("2", identifier, "after restore without a number")
      try context.expectMetadata(context.sample, identifier, "after restore without a number")
      try context.expectHistory(["2", "3", "2", "1"], identifier, "after restore without a number")
      let versions = try backend.versions(of: identifier)
      try context.expect(
        try backend.restore(identifier, version: versions[1].number), toBe: true, "restore of a number")
      try context.expectValue("3", identifier, "after restore of a number")
      try context.expectMetadata(SecretMetadata(), identifier, "after restore of a number")
      try context.expectHistory(["3", "2", "3", "2", "1"], identifier, "after restore of a number")
      try context.expectListed(["restored"], "after restore of a number")
    },

    versioned("restore-a-removed-secret") { context, backend in
      let identifier = try context.identifier("restored")
      try context.store(["1", "2"], in: identifier, metadata: context.sample)
      let first = try backend.versions(of: identifier).last?.number
      for (number, value, history) in [
        (nil, "2", ["2", nil, "2", "1"]), (first, "1", ["1", nil, "2", nil, "2", "1"]),
      ] {
        let situation = "after restore of a removed secret, \(number == nil ? "without" : "with") a number"
        try backend.remove(identifier)
        try context.expect(try backend.restore(identifier, version: number), toBe: true, "restore")
        try context.expectValue(value, identifier, situation)
        try context.expectMetadata(context.sample, identifier, situation)
        try context.expectHistory(history, identifier, situation)
        try context.expectListed(["restored"], situation)
      }
    },

    versioned("restore-of-nothing-changes-nothing") { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      try context.store(["1", "2"], in: a)
      try context.store("1", b)
      let current = try backend.versions(of: a).first?.number ?? 0
      let never = try context.identifier("never")
      for (identifier, number) in [
        (a, current), (a, current + 1000), (b, nil), (b, current + 1000), (never, nil), (never, current),
      ] {
        let name = number.map { $0 == current ? "the current version" : "an unknown number" } ?? "no number"
        try context.expect(
          try backend.restore(identifier, version: number), toBe: false,
          "restore of “\(identifier.account)”, with \(name)")
      }
      try backend.remove(b)
      let removal = try backend.versions(of: b).first?.number
      try context.expect(
        try backend.restore(b, version: removal), toBe: false, "restore, with the number of a removal")
      try context.expectHistory(["2", "1"], a, "after restore of nothing")
      try context.expectHistory([nil, "1"], b, "after restore of nothing")
      try context.expectListed(["a"], "after restore of nothing")
    },

    versioned("removed-secrets-are-listed") { context, backend in
      let names = ["c", "a", "kept", "e\u{301}", "z"]
      for name in names { try context.store("1", context.identifier(name)) }
      let other = try context.identifier("other", serviceSuffix: ".more")
      try context.store("1", other)
      try context.expectRemoved([], "before any removal")
      for name in names where name != "kept" { try backend.remove(context.identifier(name)) }
      try backend.remove(other)
      // The order is that of UTF-8 bytes, as in the list of the secrets.
      try context.expectRemoved(["a", "c", "e\u{301}", "z"], "after four removals")
      try context.expectRemoved(["other"], "in another service", serviceSuffix: ".more")
      let all = try backend.removedItems(inService: nil).map(\.identifier)
      try context.expect(
        all.filter(context.isOwn).map(\.account), toBe: ["a", "c", "e\u{301}", "z", "other"],
        "the removed secrets of all services")
      for item in try backend.removedItems(inService: context.service) {
        let removal = try backend.versions(of: item.identifier).first
        try context.expect(
          removal?.date == item.removed, "the time of a removal",
          expected: "the date of the removal's version",
          found: "another time")
      }
      try context.store("2", context.identifier("a"))
      try context.expectRemoved(["c", "e\u{301}", "z"], "after a store of one of four")
      try backend.restore(context.identifier("c"))
      try context.expectRemoved(["e\u{301}", "z"], "after restore of one of three")
      try backend.removeWithHistory(context.identifier("e\u{301}"))
      try context.expectRemoved(["z"], "after the purge of one of two")
      try backend.storeWithoutHistory(SecretBytes(copying: "2"), for: context.identifier("z"), metadata: nil)
      try context.expectRemoved([], "after a store of the last one without history")
    },

    versioned("store-without-history") { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      try context.store(["1", "2"], in: a, b, metadata: context.sample)
      func replace(_ text: String, _ identifier: SecretIdentifier, _ metadata: SecretMetadata?) throws {
        try backend.storeWithoutHistory(SecretBytes(copying: text), for: identifier, metadata: metadata)
        let situation = "after storeWithoutHistory"
        try context.expectValue(text, identifier, situation)
        try context.expectHistory([text], identifier, situation)
        try context.expect(try backend.restore(identifier), toBe: false, "restore, \(situation)")
      }
      let dropped = try backend.versions(of: a).map(\.number)
      try replace("3", a, nil)
      try context.expectMetadata(context.sample, a, "after storeWithoutHistory without metadata")
      try replace("4", a, SecretMetadata())
      try context.expectMetadata(SecretMetadata(), a, "after storeWithoutHistory with metadata")
      try context.expectNoVersions(dropped, of: a, "that was dropped")
      try context.expectHistory(["2", "1"], b, "after storeWithoutHistory of another secret")
      try backend.remove(b)
      try replace("5", b, nil)
      try replace("6", context.identifier("new"), context.sample)
      try context.store("7", a)
      try context.expectHistory(["7", "4"], a, "after a store that follows storeWithoutHistory")
    },

    versioned("refused-store-without-history-drops-nothing") { context, backend in
      let identifier = try context.identifier("kept")
      try context.store(["1", "2"], in: identifier)
      try context.expectError([.invalidMetadata], "storeWithoutHistory with invalid metadata") {
        try backend.storeWithoutHistory(
          SecretBytes(copying: "x"), for: identifier, metadata: SecretMetadata(label: "a\0b"))
      }
      if let cap = context.options.maximumSecretSize {
        let tooLarge = pattern(cap + 1)
        try context.expectError([.tooLarge], "storeWithoutHistory of one byte more than the maximum") {
          try backend.storeWithoutHistory(SecretBytes(copying: tooLarge), for: identifier, metadata: nil)
        }
      }
      try context.expectHistory(["2", "1"], identifier, "after storeWithoutHistory threw")
    },

    versioned("remove-with-history") { context, backend in
      let (stored, removed) = try context.identifiers("stored", "removed")
      let other = try context.identifier("other")
      try context.store(["1", "2"], in: stored, removed, other)
      try backend.remove(removed)
      for identifier in [stored, removed] {
        let numbers = try backend.versions(of: identifier).map(\.number)
        let name = "removeWithHistory of a secret that was \(identifier.account)"
        try context.expect(try backend.removeWithHistory(identifier), toBe: true, name)
        try context.expectValue(nil, identifier, "after \(name)")
        try context.expectHistory([], identifier, "after \(name)")
        try context.expectNoVersions(numbers, of: identifier, "after \(name)")
        try context.expect(try backend.restore(identifier), toBe: false, "restore, after \(name)")
        try context.expect(try backend.removeWithHistory(identifier), toBe: false, "\(name), called twice")
      }
      try context.expectRemoved([], "after removeWithHistory")
      try context.expectHistory(["2", "1"], other, "after removeWithHistory of other secrets")
      try context.expect(
        try backend.removeWithHistory(context.identifier("never")), toBe: false,
        "removeWithHistory of a secret that was never stored")
      try context.store("3", stored)
      try context.expectHistory(["3"], stored, "after removeWithHistory and a store")
    },

    versioned("history-limit-bounds-the-versions", alsoOmittedBy: .historyLimit) { context, backend in
      let (a, b) = try context.identifiers("a", "b")
      try context.withHistoryLimit(of: backend) { setLimit in
        try setLimit(3)
        for text in ["1", "2", "3", "4", "5"] {
          for identifier in [a, b] { try context.store(text, identifier) }
        }
        try context.expectHistory(["5", "4", "3", "2"], a, "after five stores with a limit of 3 versions")
        try backend.remove(b)
        try context.expectHistory([nil, "5", "4", "3"], b, "after a removal with a limit of 3 versions")
        try context.store("6", b)
        try context.expectHistory(
          ["6", nil, "5", "4", "3"], b, "after a removal and a store, with that limit")
        try setLimit(4)
        try context.expectHistory(["5", "4", "3", "2"], a, "after the limit was raised")
        try context.store("6", a)
        try context.expectHistory(["6", "5", "4", "3", "2"], a, "after the limit was raised, and a store")
      }
    },

    versioned("lower-history-limit-drops-versions", alsoOmittedBy: .historyLimit) { context, backend in
      let (stored, removed) = try context.identifiers("stored", "removed")
      try context.store(["1", "2", "3", "4"], in: stored, removed)
      try backend.remove(removed)
      let dropped = try backend.versions(of: stored).last?.number ?? 0
      try context.withHistoryLimit(of: backend) { setLimit in
        try setLimit(2)
        try context.expectHistory(["4", "3", "2"], stored, "after the limit was lowered to 2 versions")
        try context.expectHistory([nil, "4", "3"], removed, "after the limit was lowered to 2 versions")
        try context.expectNoVersions([dropped], of: stored, "after the limit was lowered")
        try setLimit(5)
        try context.expectHistory(["4", "3", "2"], stored, "after the limit was lowered and raised")
        try context.expectHistory([nil, "4", "3"], removed, "after the limit was lowered and raised")
      }
    },

    versioned("history-limit-of-none", alsoOmittedBy: .historyLimit) { context, backend in
      let (stored, removed) = try context.identifiers("stored", "removed")
      try context.store(["1", "2"], in: stored, removed)
      try backend.remove(removed)
      try context.withHistoryLimit(of: backend) { setLimit in
        try setLimit(0)
        try context.expectHistory(["2"], stored, "after the limit was lowered to none")
        try context.expectHistory([], removed, "after the limit was lowered to none")
        try context.expectRemoved([], "after the limit was lowered to none")
        try context.store("3", stored)
        try context.expectHistory(["3"], stored, "after a store with a limit of none")
        try context.expect(try backend.restore(stored), toBe: false, "restore, with a limit of none")
        try context.expectRemoval(of: stored, toReturn: true, "with a limit of none")
        try context.expectHistory([], stored, "after a removal with a limit of none")
        try context.expectRemoved([], "after a removal with a limit of none")
        try context.expect(try backend.restore(stored), toBe: false, "restore, after such a removal")
        try setLimit(5)
        for identifier in [stored, removed] {
          try context.expectHistory([], identifier, "after the limit was lowered to none and raised")
        }
        try context.expectRemoved([], "after the limit was lowered to none and raised")
      }
    },
  ]
}

extension ConformanceContext {
  /// Expects `removedItems(inService:)` to return the secrets with these accounts, in this order.
  fileprivate func expectRemoved(
    _ expected: [String], _ situation: String, serviceSuffix: String = ""
  ) throws {
    guard let backend = backend as? any VersionedSecretBackend else { return }
    let found = try backend.removedItems(inService: service + serviceSuffix).map(\.identifier.account)
    try expect(found, toBe: expected, "the removed secrets, \(situation)")
  }

  /// Calls `body` with a function that sets and reads back a number of versions, and resets the limit at the
  /// end.
  fileprivate func withHistoryLimit(
    of backend: any VersionedSecretBackend, _ body: ((Int) throws -> Void) throws -> Void
  ) throws {
    let original = try backend.historyLimit()
    let result = Result {
      try body { versions in
        let limit = HistoryLimit(versions: versions, days: original.days)
        try backend.setHistoryLimit(limit ?? .none)
        try expect(try backend.historyLimit(), toBe: limit, "historyLimit, after setHistoryLimit")
      }
    }
    try backend.setHistoryLimit(original)
    try result.get()
  }
}
