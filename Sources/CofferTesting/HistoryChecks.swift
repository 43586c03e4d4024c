internal import CofferCore

extension Check {
  static let historyChecks: [Check] = [
    Check(name: "restore-an-earlier-version", features: .versions) { context, backend, a in
      try context.store("1", a, context.sample)
      try context.store("2", a)
      try context.store("3", a, SecretMetadata())
      try context.expectRestore(of: a, toReturn: true, "without a number")
      try context.expectMetadata(context.sample, a, "after restore without a number")
      try context.expectHistory(["2", "3", "2", "1"], a, "after restore without a number")
      let versions = try backend.versions(of: a)
      try context.expectRestore(of: a, version: versions[1].number, toReturn: true, "with a number")
      try context.expectMetadata(SecretMetadata(), a, "after restore of a number")
      try context.expectHistory(["3", "2", "3", "2", "1"], a, "after restore of a number")
      try context.expectListed(["a"], "after restore of a number")
    },

    Check(name: "restore-a-removed-secret", features: .versions) { context, backend, a in
      try context.store(["1", "2"], in: a, metadata: context.sample)
      let first = try backend.versions(of: a).last?.number
      for (number, history) in [
        (nil, ["2", nil, "2", "1"]), (first, ["1", nil, "2", nil, "2", "1"]),
      ] {
        let situation = "after restore of a removed secret, \(number == nil ? "without" : "with") a number"
        try backend.remove(a)
        try context.expectRestore(of: a, version: number, toReturn: true, "of a removed secret")
        try context.expectMetadata(context.sample, a, situation)
        try context.expectHistory(history, a, situation)
        try context.expectListed(["a"], situation)
      }
    },

    Check(name: "restore-of-nothing-changes-nothing", features: .versions) { context, backend, a in
      let (b, never) = try context.identifiers("b", "never")
      try context.store(["1", "2"], in: a)
      try context.store("1", b)
      let current = try backend.versions(of: a).first?.number ?? 0
      for (identifier, number) in [
        (a, current), (a, current + 1000), (b, nil), (b, current + 1000), (never, nil), (never, current),
      ] {
        let name = number.map { $0 == current ? "the current version" : "an unknown number" } ?? "no number"
        try context.expectRestore(
          of: identifier, version: number, toReturn: false, "of “\(identifier.account)”, with \(name)")
      }
      try backend.remove(b)
      let removal = try backend.versions(of: b).first?.number
      try context.expectRestore(of: b, version: removal, toReturn: false, "with the number of a removal")
      try context.expectHistory(["2", "1"], a, "after restore of nothing")
      try context.expectHistory([nil, "1"], b, "after restore of nothing")
      try context.expectListed(["a"], "after restore of nothing")
    },

    Check(name: "removed-secrets-are-listed", features: .versions) { context, backend, _ in
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
          expected: "the date of the removal's version", found: "another time")
      }
      try context.store("2", context.identifier("a"))
      try context.expectRemoved(["c", "e\u{301}", "z"], "after a store of one of four")
      try backend.restore(context.identifier("c"))
      try context.expectRemoved(["e\u{301}", "z"], "after restore of one of three")
      try backend.erase(context.identifier("e\u{301}"))
      try context.expectRemoved(["z"], "after the purge of one of two")
      try backend.erase(context.identifier("z"))
      try context.expectRemoved([], "after the erasure of the last one")
    },

    Check(name: "erase", features: .versions) { context, backend, _ in
      let (stored, removed) = try context.identifiers("stored", "removed")
      let other = try context.identifier("other")
      try context.store(["1", "2"], in: stored, removed, other)
      try backend.remove(removed)
      for identifier in [stored, removed] {
        let numbers = try backend.versions(of: identifier).map(\.number)
        let name = "erase of a secret that was \(identifier.account)"
        try context.expect(try backend.erase(identifier), toBe: true, name)
        try context.expectHistory([], identifier, "after \(name)")
        try context.expectNoVersions(numbers, of: identifier, "after \(name)")
        try context.expectRestore(of: identifier, toReturn: false, "after \(name)")
        try context.expect(try backend.erase(identifier), toBe: false, "\(name), called twice")
      }
      try context.expectRemoved([], "after erase")
      try context.expectHistory(["2", "1"], other, "after erase of other secrets")
      try context.expect(
        try backend.erase(context.identifier("never")), toBe: false,
        "erase of a secret that was never stored")
      try context.store("3", stored)
      try context.expectHistory(["3"], stored, "after erase and a store")
    },

    Check(name: "history-none-hides-what-was-before", features: .versions) { context, backend, _ in
      let (stored, removed) = try context.identifiers("stored", "removed")
      func store(_ text: String, _ identifier: SecretIdentifier, _ history: History) throws {
        try backend.store(SecretBytes(text), for: identifier, metadata: .newValue, history: history)
      }
      for identifier in [stored, removed] {
        for text in ["1", "2"] { try store(text, identifier, .unchanged) }
      }
      try store("3", stored, .none)
      try context.expectHistory(["3"], stored, "after a store without history")
      try context.expectRestore(of: stored, toReturn: false, "after a store without history")
      try store("4", stored, .unchanged)
      try context.expectHistory(["4"], stored, "after a store that leaves a secret without history as it is")
      try store("5", stored, .kept)
      try context.expectHistory(["5", "4"], stored, "after a store that begins to keep the history")
      try store("6", stored, .unchanged)
      try context.expectHistory(["6", "5", "4"], stored, "after a store that leaves a history as it is")
      try context.expect(try backend.remove(removed, history: .none), toBe: true, "remove, without history")
      try context.expectHistory([], removed, "after a removal without history")
      try context.expectRemoved([], "after a removal without history")
      try context.expectRestore(of: removed, toReturn: false, "after a removal without history")
      try store("7", removed, .unchanged)
      try store("8", removed, .unchanged)
      try context.expectHistory(["8", "7"], removed, "after two stores that follow a removal without history")
    },

    Check(name: "history-limit-bounds-the-versions", features: .versions, setsHistoryLimit: true) {
      context, backend, a in
      let b = try context.identifier("b")
      try context.withHistoryLimit { setLimit in
        try setLimit(3)
        for text in ["1", "2", "3", "4", "5"] {
          for identifier in [a, b] { try context.store(text, identifier) }
        }
        try context.expectHistory(["5", "4", "3", "2"], a, "after five stores with a limit of 3 versions")
        try backend.remove(b)
        try context.expectHistory([nil, "5", "4", "3"], b, "after a removal with a limit of 3 versions")
        try context.store("6", b)
        try context.expectHistory(["6", nil, "5", "4", "3"], b, "after a removal and a store, with that limit")
        try setLimit(4)
        try context.expectHistory(["5", "4", "3", "2"], a, "after the limit was raised")
        try context.store("6", a)
        try context.expectHistory(["6", "5", "4", "3", "2"], a, "after the limit was raised, and a store")
      }
    },

    Check(name: "lower-history-limit-drops-versions", features: .versions, setsHistoryLimit: true) {
      context, backend, _ in
      let (stored, removed) = try context.identifiers("stored", "removed")
      try context.store(["1", "2", "3", "4"], in: stored, removed)
      try backend.remove(removed)
      let dropped = try backend.versions(of: stored).last?.number ?? 0
      try context.withHistoryLimit { setLimit in
        try setLimit(2)
        try context.expectHistory(["4", "3", "2"], stored, "after the limit was lowered to 2 versions")
        try context.expectHistory([nil, "4", "3"], removed, "after the limit was lowered to 2 versions")
        try context.expectNoVersions([dropped], of: stored, "after the limit was lowered")
        try setLimit(5)
        try context.expectHistory(["4", "3", "2"], stored, "after the limit was lowered and raised")
        try context.expectHistory([nil, "4", "3"], removed, "after the limit was lowered and raised")
      }
    },

    Check(name: "history-limit-of-none", features: .versions, setsHistoryLimit: true) { context, backend, _ in
      let (stored, removed) = try context.identifiers("stored", "removed")
      try context.store(["1", "2"], in: stored, removed)
      try backend.remove(removed)
      try context.withHistoryLimit { setLimit in
        try setLimit(0)
        try context.expectHistory(["2"], stored, "after the limit was lowered to none")
        try context.expectHistory([], removed, "after the limit was lowered to none")
        try context.expectRemoved([], "after the limit was lowered to none")
        try context.store("3", stored)
        try context.expectHistory(["3"], stored, "after a store with a limit of none")
        try context.expectRestore(of: stored, toReturn: false, "with a limit of none")
        try context.expectRemoval(of: stored, toReturn: true, "with a limit of none")
        try context.expectHistory([], stored, "after a removal with a limit of none")
        try context.expectRemoved([], "after a removal with a limit of none")
        try context.expectRestore(of: stored, toReturn: false, "after such a removal")
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
  /// Expects `restore` to return a version if `expected`, and otherwise `nil`.
  fileprivate func expectRestore(
    of identifier: SecretIdentifier, version: Int? = nil, toReturn expected: Bool, _ situation: String
  ) throws {
    let isRestored = try backend.restore(identifier, version: version) != nil
    try expect(isRestored, toBe: expected, "restore, \(situation)")
  }

  /// Expects `removedItems(inService:)` to return the secrets with these accounts, in this order.
  fileprivate func expectRemoved(_ expected: [String], _ situation: String, serviceSuffix: String = "") throws {
    let found = try backend.removedItems(inService: service + serviceSuffix).map(\.identifier.account)
    try expect(found, toBe: expected, "the removed secrets, \(situation)")
  }

  /// Calls `body` with a function that sets the number of versions. Sets the number to 10 at the end.
  fileprivate func withHistoryLimit(_ body: ((Int) throws -> Void) throws -> Void) throws {
    guard let set = options.setHistoryVersions else { return }
    let outcome = Result { try body { versions in try set(backend, versions) } }
    try set(backend, 10)
    try outcome.get()
  }
}
