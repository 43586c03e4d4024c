internal import CofferCore
internal import Synchronization

extension ConformanceCheck {
  private static func transactional(
    _ name: String,
    alsoOmittedBy omissions: SecretBackendConformance.Omissions = [],
    _ body: @escaping @Sendable (ConformanceContext, any TransactionalSecretBackend) throws -> Void
  ) -> ConformanceCheck {
    ConformanceCheck(
      name: name,
      omittedBy: omissions.union(.transactions),
      applies: { $0 is any TransactionalSecretBackend }
    ) { context in
      guard let backend = context.backend as? any TransactionalSecretBackend else { return }
      try body(context, backend)
    }
  }

  static let transactionChecks: [ConformanceCheck] = [
    transactional("transaction-commits-all") { context, backend in
      let (a, b, gone) = (
        try context.identifier("a"), try context.identifier("b"), try context.identifier("gone")
      )
      try context.store("before", a)
      try context.store("before", gone)
      let sample = context.sample
      let removed = try backend.transaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes(copying: "after"), for: a, metadata: nil)
        try transaction.store(SecretBytes(copying: ""), for: b, metadata: sample)
        return try transaction.remove(gone)
      }
      try context.expect(removed, "removing in a transaction says there was none")
      try context.expectValue("after", a, "after a transaction overwrote it")
      try context.expectValue("", b, "after a transaction stored it")
      try context.expectValue(nil, gone, "after a transaction removed it")
      try context.expectMetadata(sample, try context.metadata(b), "a store in a transaction")
    },

    transactional("transaction-sees-its-own-changes") { context, backend in
      let (a, b) = (try context.identifier("a"), try context.identifier("b"))
      try context.store("before", a)
      let seen = try backend.transaction { transaction throws(SecretError) in
        var seen: [[UInt8]?] = []
        func look(_ identifier: SecretIdentifier) throws(SecretError) {
          if let secret = try transaction.lookUp(identifier) {
            seen.append(secret.array)
          } else {
            seen.append(nil)
          }
        }
        try look(a)
        try look(b)
        try transaction.store(SecretBytes(copying: "after"), for: a, metadata: nil)
        try transaction.store(SecretBytes(copying: "new"), for: b, metadata: nil)
        try look(a)
        try look(b)
        try transaction.remove(b)
        try look(b)
        let knows = (
          try transaction.item(a) != nil, try transaction.item(b) != nil, try transaction.remove(b)
        )
        return (seen, knows)
      }
      let expected = ["before", nil, "after", "new", nil].map { $0.map { Array($0.utf8) } }
      for (index, pair) in zip(seen.0, expected).enumerated() {
        try ConformanceContext.expect(pair.0, toBe: pair.1, "lookup number \(index) in a transaction")
      }
      try context.expect(seen.1.0, "item(_:) in a transaction does not know a secret it stored")
      try context.expect(!seen.1.1, "item(_:) in a transaction knows a secret it removed")
      try context.expect(!seen.1.2, "removing twice in a transaction says there was one")
    },

    transactional("transaction-that-throws-changes-nothing") { context, backend in
      let (a, b, c) = (try context.identifier("a"), try context.identifier("b"), try context.identifier("c"))
      try context.store("a", a, context.sample)
      try context.store("b", b)
      let error = SecretError(.encodingFailed, "The check gave up its transaction.")
      let thrown = try context.expectError([.encodingFailed], from: "a transaction whose closure throws") {
        () throws(SecretError) in
        try backend.transaction { transaction throws(SecretError) in
          try transaction.store(SecretBytes(copying: "x"), for: a, metadata: SecretMetadata())
          try transaction.remove(b)
          try transaction.store(SecretBytes(copying: "x"), for: c, metadata: nil)
          throw error
        }
      }
      try context.expect(thrown == error, "the error that a transaction threw is not its closure's")
      try context.expectValue("a", a, "after a transaction that overwrote it threw")
      try context.expectMetadata(context.sample, try context.metadata(a), "a transaction that threw")
      try context.expectValue("b", b, "after a transaction that removed it threw")
      try context.expectValue(nil, c, "after a transaction that stored it threw")
      try context.expect(
        try context.listedAccounts().count == 2,
        "the list changed with a transaction that threw"
      )
      try context.store("later", a)
      try context.expectValue("later", a, "stored after a transaction threw")
    },

    transactional("transaction-that-is-over-is-a-conflict") { context, backend in
      let identifier = try context.identifier("late")
      try context.store("before", identifier)
      for throwing in [false, true] {
        var kept: (any SecretTransaction)?
        do throws(SecretError) {
          try backend.transaction { transaction throws(SecretError) in
            kept = transaction
            if throwing { throw SecretError(.conflict, "The check gave up its transaction.") }
          }
        } catch {
          try context.expect(throwing, "a transaction that does nothing threw \(error.code)")
        }
        guard let kept else { throw ConformanceContext.Expectation("a transaction's closure was not called") }
        try context.expectError([.conflict], from: "lookup in a transaction that is over") {
          () throws(SecretError) in
          _ = try kept.lookUp(identifier)
        }
        try context.expectError([.conflict], from: "item in a transaction that is over") {
          () throws(SecretError) in
          _ = try kept.item(identifier)
        }
        try context.expectError([.conflict], from: "store in a transaction that is over") {
          () throws(SecretError) in
          try kept.store(SecretBytes(copying: "late"), for: identifier, metadata: nil)
        }
        try context.expectError([.conflict], from: "remove in a transaction that is over") {
          () throws(SecretError) in
          try kept.remove(identifier)
        }
      }
      try context.expectValue("before", identifier, "after transactions that are over were used")
    },

    transactional("backend-inside-its-own-transaction-is-a-conflict") { context, backend in
      let (a, b) = (try context.identifier("a"), try context.identifier("b"))
      try context.store("before", a)
      let service = context.service
      let calls: [(String, () throws(SecretError) -> Void)] = [
        ("lookup", { () throws(SecretError) in _ = try backend.lookUp(a) }),
        (
          "store",
          { () throws(SecretError) in try backend.store(SecretBytes(copying: "x"), for: a, metadata: nil) }
        ),
        ("remove", { () throws(SecretError) in try backend.remove(a) }),
        ("items(inService:)", { () throws(SecretError) in _ = try backend.items(inService: service) }),
        ("transaction", { () throws(SecretError) in try backend.transaction { _ throws(SecretError) in } }),
      ]
      var codes: [(String, SecretError.Code?)] = []
      try backend.transaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes(copying: "1"), for: b, metadata: nil)
        for (name, call) in calls {
          do throws(SecretError) {
            try call()
            codes.append((name, nil))
          } catch {
            codes.append((name, error.code))
          }
        }
        try transaction.store(SecretBytes(copying: "2"), for: b, metadata: nil)
      }
      for (name, code) in codes where code != .conflict {
        let outcome = code.map { "threw \($0)" } ?? "threw nothing"
        throw ConformanceContext.Expectation("\(name) inside the backend's own transaction \(outcome)")
      }
      try context.expectValue("before", a, "after the backend was used inside its own transaction")
      try context.expectValue("2", b, "after a transaction that went on")
    },

    transactional("transaction-of-many") { context, backend in
      let identifiers = try (0..<200).map { try context.identifier("secret \(1000 + $0)") }
      try backend.transaction { transaction throws(SecretError) in
        for identifier in identifiers {
          try transaction.store(SecretBytes(copying: identifier.account), for: identifier, metadata: nil)
        }
      }
      for identifier in identifiers {
        try context.expectValue(identifier.account, identifier, "of one transaction")
      }
      try context.expect(
        try context.backend.items(inService: context.service).map(\.identifier) == identifiers,
        "200 secrets of one transaction are not listed, each once"
      )
    },

    transactional("transactions-are-seen-whole", alsoOmittedBy: .concurrency) { context, backend in
      let rounds = context.options.rounds
      let identifiers = try (0..<5).map { try context.identifier("\($0)") }
      let isDone = Atomic(false)
      try context.onThreads(2) { thread in
        if thread == 1 {
          repeat {
            let count = try context.listedAccounts().count
            try context.expect(
              count == 0 || count == 5,
              "\(count) of the 5 secrets of one transaction were seen"
            )
          } while !isDone.load(ordering: .acquiring)
          return
        }
        defer { isDone.store(true, ordering: .releasing) }
        for round in 0..<rounds {
          try backend.transaction { transaction throws(SecretError) in
            for identifier in identifiers {
              if round.isMultiple(of: 2) {
                try transaction.store(SecretBytes(copying: "x"), for: identifier, metadata: nil)
              } else {
                try transaction.remove(identifier)
              }
            }
          }
        }
      }
    },

    transactional("transactions-lose-no-update", alsoOmittedBy: .concurrency) { context, backend in
      let (threads, rounds) = (context.options.threads, context.options.rounds)
      let counter = try context.identifier("counter")
      try context.onThreads(threads) { _ in
        for _ in 0..<rounds {
          try backend.transaction { transaction throws(SecretError) in
            let count = Int(try transaction.lookUp(counter)?.string() ?? "0") ?? 0
            try transaction.store(SecretBytes(copying: String(count + 1)), for: counter, metadata: nil)
          }
        }
      }
      try context.expectValue(
        String(threads * rounds),
        counter,
        "after \(threads) threads counted to \(rounds) in transactions"
      )
    },
  ]
}
