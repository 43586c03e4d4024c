internal import CofferCore
internal import Synchronization

extension Check {
  static let concurrencyChecks: [Check] = [
    Check(name: "writers-to-different-names", omittedBy: .concurrency) { context, backend, _ in
      let (threads, rounds) = (context.options.threadCount, context.options.roundCount)
      let situation = "after \(threads) threads wrote different secrets"
      try context.onThreads(threads) { thread in
        for round in 0..<rounds {
          let identifier = try context.identifier("\(thread).\(round)")
          try context.store(identifier.account, identifier)
          if round % 5 == 4 { try backend.remove(identifier) }
        }
      }
      var stored: [String] = []
      for thread in 0..<threads {
        for round in 0..<rounds {
          let account = "\(thread).\(round)"
          if round % 5 != 4 { stored.append(account) }
          let expected = round % 5 == 4 ? nil : Array(account.utf8)
          try context.expectValue(expected, context.identifier(account), situation)
        }
      }
      try context.expectListed(stored.sorted(), situation)
    },

    Check(name: "writers-to-one-name", omittedBy: .concurrency) { context, _, a in
      let (threads, rounds) = (context.options.threadCount, context.options.roundCount)
      try context.onThreads(threads) { thread in
        for round in 0..<rounds { try context.store(whole(thread, round), a) }
      }
      let last = try context.value(a)
      let situation = "after \(threads) threads wrote one secret"
      try context.expect(
        (0..<threads).contains { last == whole($0, rounds - 1) }, situation,
        expected: "the last value of one of the threads", found: last == nil ? "no secret" : "another value")
      try context.expectListed(["a"], situation)
    },

    Check(name: "reads-during-writes", omittedBy: .concurrency) { context, _, a in
      let (threads, rounds) = (max(2, context.options.threadCount), context.options.roundCount)
      let legal = Set((0..<rounds).map { whole(0, $0) })
      try context.store(whole(0, 0), a)
      let isDone = Atomic(false)
      try context.onThreads(threads) { thread in
        if thread == 0 {
          defer { isDone.store(true, ordering: .releasing) }
          for round in 0..<rounds { try context.store(whole(0, round), a) }
        } else {
          repeat {
            let value = try context.value(a)
            try context.expect(
              value.map(legal.contains) ?? false, "a lookup during overwrites",
              expected: "one of the stored values", found: value == nil ? "no secret" : "another value")
            try context.expectListed(["a"], "a list during overwrites")
          } while !isDone.load(ordering: .acquiring)
        }
      }
    },
  ]

  /// Returns the value that a thread writes in a round. Each has its own length and content.
  private static func whole(_ thread: Int, _ round: Int) -> [UInt8] {
    pattern(1 + (thread * 37 + round * 101) % 3000, seed: UInt64(thread * 100_000 + round + 2))
  }
}
