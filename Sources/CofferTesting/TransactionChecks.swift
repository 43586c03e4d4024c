internal import CofferCore
internal import Synchronization

extension Check {
  static let transactionChecks: [Check] = [
    Check(name: "transaction-commits-all", features: .transactions) { context, backend, a in
      let (b, removed) = try context.identifiers("b", "removed")
      try context.store(["before"], in: a, removed)
      let sample = context.sample
      let isRemoved = try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store("after", a)
        try transaction.store(SecretBytes(""), for: b, metadata: .replace(sample))
        return try transaction.remove(removed)
      }
      try context.expect(isRemoved, toBe: true, "remove, in a transaction")
      try context.expectValue("after", a, "after an overwrite in a transaction")
      try context.expectValue("", b, "after a store in a transaction")
      try context.expectMetadata(sample, b, "after a store in a transaction")
      try context.expectValue(nil, removed, "after a removal in a transaction")
    },

    Check(name: "transaction-sees-its-own-changes", features: .transactions) { context, backend, a in
      let b = try context.identifier("b")
      try context.store("before", a)
      var values: [[UInt8]?] = []
      let (hasA, hasB, isRemoved) = try backend.withTransaction { transaction throws(SecretError) in
        for identifier in [a, b] { values.append(try transaction.lookUp(identifier)?.array()) }
        try transaction.store("after", a)
        try transaction.store("new", b)
        for identifier in [a, b] { values.append(try transaction.lookUp(identifier)?.array()) }
        try transaction.remove(b)
        values.append(try transaction.lookUp(b)?.array())
        return (try transaction.item(a) != nil, try transaction.item(b) != nil, try transaction.remove(b))
      }
      let expected = ["before", nil, "after", "new", nil].map { $0.map { Array($0.utf8) } }
      for (index, (value, expected)) in zip(values, expected).enumerated() {
        try context.expect(value, toBe: expected, "the lookup number \(index) in a transaction")
      }
      try context.expect(hasA, toBe: true, "whether item returns a secret that the transaction stored")
      try context.expect(hasB, toBe: false, "whether item returns a secret that the transaction removed")
      try context.expect(isRemoved, toBe: false, "remove, called twice in a transaction")
    },

    Check(name: "transaction-lists-its-own-changes", features: .transactions) { context, backend, _ in
      let (kept, removed) = try context.identifiers("kept", "removed")
      let (added, gone) = try context.identifiers("added", "gone")
      for identifier in [kept, removed] { try context.store("before", identifier) }
      let service = context.service
      let (before, after, all) = try backend.withTransaction { transaction throws(SecretError) in
        let before = try transaction.items(inService: service)
        try transaction.store("x", added)
        try transaction.store("x", gone)
        try transaction.remove(gone)
        try transaction.remove(removed)
        return (before, try transaction.items(inService: service), try transaction.items(inService: nil))
      }
      try context.expect(
        before.map(\.identifier), toBe: [kept, removed].sorted(), "items(inService:), in a transaction")
      try context.expect(
        after.map(\.identifier), toBe: [added, kept].sorted(),
        "items(inService:), after changes in the same transaction")
      try context.expect(
        all.filter { $0.identifier.service == service }.map(\.identifier), toBe: [added, kept].sorted(),
        "items(inService: nil), after changes in the same transaction")
      try context.expectListed(["added", "kept"], "after a transaction that listed its changes")
    },

    Check(name: "transaction-that-throws-changes-nothing", features: .transactions) { context, _, a in
      let (b, c) = try context.identifiers("b", "c")
      try context.store("a", a, context.sample)
      try context.store("b", b)
      let situation = "after a transaction whose closure threw"
      try context.cancelTransaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes("x"), for: a, metadata: .replace(SecretMetadata()))
        try transaction.remove(b)
        try transaction.store("x", c)
      }
      try context.expectValue("a", a, situation)
      try context.expectMetadata(context.sample, a, situation)
      try context.expectValue("b", b, situation)
      try context.expectValue(nil, c, situation)
      try context.expectListed(["a", "b"], situation)
      try context.store("later", a)
      try context.expectValue("later", a, "after a store that follows a transaction whose closure threw")
    },

    Check(name: "backend-inside-its-own-transaction-is-a-conflict", features: .transactions) {
      context, backend, a in
      try context.store("before", a)
      try context.expectConflicts([
        ("lookUp", { _ = try backend.lookUp(a) }),
        ("store", { try context.store("x", a) }),
        ("remove", { try backend.remove(a) }),
        ("items(inService:)", { _ = try backend.items(inService: context.service) }),
        ("transaction", { try backend.withTransaction { _ throws(SecretError) in } }),
      ])
      try context.expectValue("before", a, "after calls inside the backend's own transaction")
    },

    Check(name: "transaction-of-many", features: .transactions) { context, backend, _ in
      let identifiers = try (0..<200).map { try context.identifier("secret \(1000 + $0)") }
      try backend.withTransaction { transaction throws(SecretError) in
        for identifier in identifiers { try transaction.store(identifier.account, identifier) }
      }
      for identifier in identifiers {
        try context.expectValue(identifier.account, identifier, "one of 200 secrets of one transaction")
      }
      try context.expectListed(identifiers.map(\.account), "after a transaction of 200 stores")
    },

    Check(
      name: "transactions-are-atomic-for-readers", features: .transactions, omittedBy: .concurrency
    ) { context, backend, _ in
      let rounds = context.options.roundCount
      let identifiers = try (0..<5).map { try context.identifier("\($0)") }
      let isDone = Atomic(false)
      try context.onThreads(2) { thread in
        if thread == 1 {
          repeat {
            let count = try backend.items(inService: context.service).count
            try context.expect(
              count == 0 || count == 5, "a list during transactions of 5 stores or removals",
              expected: "none or all of the 5 secrets", found: "\(count)")
          } while !isDone.load(ordering: .acquiring)
          return
        }
        defer { isDone.store(true, ordering: .releasing) }
        for round in 0..<rounds {
          try backend.withTransaction { transaction throws(SecretError) in
            for identifier in identifiers {
              if round.isMultiple(of: 2) {
                try transaction.store("x", identifier)
              } else {
                try transaction.remove(identifier)
              }
            }
          }
        }
      }
    },

    Check(name: "transactions-lose-no-update", features: .transactions, omittedBy: .concurrency) {
      context, backend, _ in
      let (threads, rounds) = (context.options.threadCount, context.options.roundCount)
      let counter = try context.identifier("counter")
      try context.onThreads(threads) { _ in
        for _ in 0..<rounds {
          try backend.withTransaction { transaction throws(SecretError) in
            let count = Int(try transaction.lookUp(counter)?.string() ?? "0") ?? 0
            try transaction.store(String(count + 1), counter)
          }
        }
      }
      try context.expectValue(
        String(threads * rounds), counter, "after \(threads) threads counted to \(rounds) in transactions")
    },
  ]
}

extension ConformanceContext {
  private static let cancellation = SecretError(.encodingFailed, "The check cancelled its transaction.")

  /// Runs `body` in a transaction whose closure then throws, and expects its error.
  func cancelTransaction(after body: (any SecretTransaction) throws(SecretError) -> Void) throws {
    let situation = "a transaction whose closure throws"
    let thrown = try expectError([Self.cancellation.code], situation) {
      try backend.withTransaction { transaction throws(SecretError) in
        try body(transaction)
        throw Self.cancellation
      }
    }
    try expect(
      thrown == Self.cancellation, situation, expected: "the closure's error",
      found: "another error with the same code")
  }

  /// Expects each of `calls` to be a conflict inside a transaction of the backend, which can continue afterwards.
  func expectConflicts(_ calls: [(name: String, call: () throws -> Void)]) throws {
    let other = try identifier("stored around the calls")
    var outcomes: [Result<Void, any Error>] = []
    try backend.withTransaction { transaction throws(SecretError) in
      try transaction.store("1", other)
      outcomes = calls.map { Result(catching: $0.call) }
      try transaction.store("2", other)
    }
    for ((name, _), outcome) in zip(calls, outcomes) {
      try expectError([.conflict], "\(name), inside the backend's own transaction") { try outcome.get() }
    }
    try expectValue("2", other, "after a transaction that continued after such calls")
  }
}
