import CofferCore
import CofferTestSupport
import CofferTesting
import Testing

/// `withTransaction` over backends with transactions and without.
@Suite struct TransactionAdapterTests {
  private final class Kept { var transaction: (any SecretTransaction)? }

  let (first, second): (SecretIdentifier, SecretIdentifier)

  init() throws {
    first = try SecretIdentifier(service: "tests", account: "first")
    second = try SecretIdentifier(service: "tests", account: "second")
  }

  private func code(_ body: () throws(SecretError) -> Void) -> SecretError.Code? {
    do throws(SecretError) {
      try body()
      return nil
    } catch {
      return error.code
    }
  }

  @Test(arguments: [MemoryBackend(), PlainBackend()] as [any SecretBackend])
  func everyCallOfATransactionReachesTheBackend(_ backend: any SecretBackend) throws {
    try backend.store(SecretBytes("1"), for: first)
    let label = try backend.withTransaction { transaction throws(SecretError) in
      let value = try transaction.lookUp(first)
      try transaction.store(
        value ?? SecretBytes("none"), for: second, metadata: .replace(SecretMetadata(label: "copy")))
      #expect(try transaction.remove(first))
      #expect(try !transaction.remove(first))
      #expect(try transaction.item(first) == nil)
      return try transaction.item(second)?.metadata.label
    }
    #expect(label == "copy")
    #expect(try backend.lookUp(first) == nil)
    #expect(try backend.lookUp(second)?.string() == "1")
  }

  @Test func aFailureUndoesEarlierStepsOnlyInARealTransaction() throws {
    func store(_ backend: any SecretBackend) throws(SecretError) {
      try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes("1"), for: first)
        throw SecretError(.io, "It failed.")
      }
    }
    let (transactional, plain) = (MemoryBackend(), PlainBackend())
    #expect(transactional.features.contains(.transactions) && plain.features.isEmpty)
    #expect(code { () throws(SecretError) in try store(transactional) } == .io)
    #expect(try transactional.item(first) == nil)
    #expect(code { () throws(SecretError) in try store(plain) } == .io)
    #expect(try plain.item(first) != nil)
  }

  @Test func anErrorSaysWhatEarlierStepsHaveChanged() throws {
    func effect(_ backend: any SecretBackend, _ step: (any SecretTransaction) throws(SecretError) -> Void)
      -> SecretError.Effect?
    {
      do throws(SecretError) {
        try backend.withTransaction { transaction throws(SecretError) in
          try step(transaction)
          throw SecretError(.io, "It failed.")
        }
        return nil
      } catch { return error.effect }
    }
    let steps: [((any SecretTransaction) throws(SecretError) -> Void, SecretError.Effect)] = [
      ({ transaction throws(SecretError) in _ = try transaction.lookUp(first) }, .none),
      ({ transaction throws(SecretError) in _ = try transaction.remove(first) }, .none),
      ({ transaction throws(SecretError) in try transaction.store(SecretBytes("1"), for: first) }, .changed),
      ({ transaction throws(SecretError) in try transaction.move(first, to: second, replacing: true) }, .changed),
      ({ transaction throws(SecretError) in _ = try transaction.erase(second) }, .changed),
    ]
    let plain = PlainBackend()
    for (step, expected) in steps { #expect(effect(plain, step) == expected) }
    for (step, _) in steps.dropLast(2) { #expect(effect(MemoryBackend(), step) == SecretError.Effect.none) }
    // A value that is stored through a wrapper, on a backend whose first step fails.
    let failing = FailingBackend(PlainBackend())
    failing.fail(.store, with: SecretError(.denied, "The test says so."))
    #expect(
      effect(failing) { transaction throws(SecretError) in try transaction.store(SecretBytes("1"), for: first) }
        == SecretError.Effect.none)
  }

  @Test(arguments: [MemoryBackend(), PlainBackend()] as [any SecretBackend])
  func aTransactionThatHasEndedThrowsConflict(_ backend: any SecretBackend) throws {
    let kept = Kept()
    try backend.withTransaction { kept.transaction = $0 }
    let ended = try #require(kept.transaction)
    #expect(code { () throws(SecretError) in _ = try ended.lookUp(first) } == .conflict)
    #expect(code { () throws(SecretError) in _ = try ended.item(first) } == .conflict)
    #expect(code { () throws(SecretError) in _ = try ended.remove(first) } == .conflict)
    #expect(
      code { () throws(SecretError) in
        try ended.store(SecretBytes("1"), for: first)
      } == .conflict)
    #expect(try backend.item(first) == nil)
  }

  @Test func theOwnErrorOfATransactionIsThrownAndNothingIsChanged() throws {
    struct Own: Error {}
    let backend: any SecretBackend = MemoryBackend()
    #expect(throws: Own.self) {
      try backend.withTransaction { transaction in
        try transaction.store(SecretBytes("1"), for: first)
        throw Own()
      }
    }
    #expect(try backend.item(first) == nil)
    let failure = #expect(throws: SecretError.self) {
      try backend.withTransaction { transaction in
        if try transaction.item(first) == nil { throw SecretError(.missing, "The test says so.") }
      }
    }
    #expect(failure?.code == .missing)
    #expect(try backend.withTransaction { transaction in try transaction.items(inService: nil).count } == 0)
  }

  @Test(arguments: [MemoryBackend(), PlainBackend()] as [any SecretBackend])
  func removeAllRemovesTheSecretsOfOneService(_ backend: any SecretBackend) throws {
    let other = try SecretIdentifier(service: "other", account: "first")
    for identifier in [first, second, other] { try backend.store(SecretBytes("1"), for: identifier) }
    try backend.withTransaction { transaction throws(SecretError) in
      try transaction.store(SecretBytes("2"), for: first)
      #expect(try transaction.items(inService: "tests").map(\.identifier) == [first, second].sorted())
    }
    #expect(try backend.removeAll(inService: "tests") == 2)
    #expect(try backend.items(inService: nil).map(\.identifier) == [other])
    #expect(try backend.removeAll(inService: "tests") == 0)
  }
}
