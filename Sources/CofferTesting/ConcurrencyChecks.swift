internal import CofferCore
internal import Synchronization

extension ConformanceCheck {
  static let concurrencyChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "writers-to-different-names", omittedBy: .concurrency) { context in
      let (threads, rounds) = (context.options.threads, context.options.rounds)
      try context.onThreads(threads) { thread in
        for round in 0..<rounds {
          try context.store("\(thread).\(round)", context.identifier("\(thread).\(round)"))
          if round % 5 == 4 { try context.backend.remove(context.identifier("\(thread).\(round)")) }
        }
      }
      for thread in 0..<threads {
        for round in 0..<rounds {
          let expected = round % 5 == 4 ? nil : Array("\(thread).\(round)".utf8)
          try context.expectValue(
            expected,
            context.identifier("\(thread).\(round)"),
            "after \(threads) threads wrote at a time"
          )
        }
      }
      let listed = try context.listedAccounts()
      try context.expect(
        listed.count == Set(listed).count,
        "a secret is listed twice after concurrent writes"
      )
      try context.expect(
        listed.count == threads * (rounds - rounds / 5),
        "after concurrent writes the list is not complete"
      )
    },

    ConformanceCheck(name: "writers-to-one-name", omittedBy: .concurrency) { context in
      let (threads, rounds) = (context.options.threads, context.options.rounds)
      let identifier = try context.identifier("contended")
      try context.onThreads(threads) { thread in
        for round in 0..<rounds { try context.store(whole(thread, round), identifier) }
      }
      let last = try context.value(identifier)
      try context.expect(
        (0..<threads).contains { last == whole($0, rounds - 1) },
        "after \(threads) threads wrote one secret it is the last write of none of them"
      )
      try context.expect(
        try context.listedAccounts().count == 1,
        "a secret with several writers is not listed once"
      )
    },

    ConformanceCheck(name: "reads-during-writes", omittedBy: .concurrency) { context in
      let (threads, rounds) = (max(2, context.options.threads), context.options.rounds)
      let identifier = try context.identifier("contended")
      let legal = Set((0..<rounds).map { whole(0, $0) })
      try context.store(whole(0, 0), identifier)
      let isDone = Atomic(false)
      try context.onThreads(threads) { thread in
        if thread == 0 {
          defer { isDone.store(true, ordering: .releasing) }
          for round in 0..<rounds { try context.store(whole(0, round), identifier) }
        } else {
          repeat {
            guard let value = try context.value(identifier) else {
              throw ConformanceContext.Expectation("a secret was missing while it was overwritten")
            }
            try context.expect(legal.contains(value), "a value was read that nobody had stored")
            let listed = try context.listedAccounts().count
            try context.expect(listed == 1, "a secret was listed \(listed) times while it was overwritten")
          } while !isDone.load(ordering: .acquiring)
        }
      }
    },
  ]

  /// The value that a thread writes in a round: of its own length, and whole or not at a glance.
  private static func whole(_ thread: Int, _ round: Int) -> [UInt8] {
    pattern(1 + (thread * 37 + round * 101) % 3000, seed: UInt64(thread * 100_000 + round + 2))
  }
}
