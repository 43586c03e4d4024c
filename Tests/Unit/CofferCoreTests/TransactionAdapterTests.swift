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

  @Test func anErrorOfASeriesOfStepsSaysWhatStays() throws {
    let base = FailingBackend(PlainBackend())
    for decorated in [base, ForwardingBackend(base)] as [any SecretBackend] {
      base.recover()
      for identifier in [first, second] { try decorated.store(SecretBytes("1"), for: identifier) }
      // The second removal fails.
      let failing = SecondRemovalFails(decorated)
      let error = #expect(throws: SecretError.self) { try failing.removeAll(inService: "tests") }
      #expect(error?.effect == .changed)
      let raw = try failing.transaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes("2"), for: first)
        _ = try transaction.remove(second)
        _ = try transaction.remove(first)
      }
      if case .failure(let error) = raw { #expect(error.effect == .changed) } else { Issue.record("no failure") }
    }
  }

  private final class SecondRemovalFails: ForwardingBackend, @unchecked Sendable {  // used by one thread
    var removals = 0
    override func decorate(_ access: any SecretAccess, for call: SecretCall) throws(SecretError) -> any SecretAccess {
      if case .remove = call { removals += 1 }
      if removals.isMultiple(of: 2), case .remove = call { throw SecretError(.io, "The test says so.") }
      return access
    }
  }

  @Test(arguments: [false, true]) func aFailingCommitChangesNothing(withoutPrompts: Bool) throws {
    final class Prompting: ForwardingBackend, @unchecked Sendable {}
    final class Quiet: SecretBackend, PassingAccess {
      let memory = MemoryBackend()
      var base: any SecretAccess { memory }
      var features: SecretFeatures { memory.features }
      var withoutPrompts: any SecretBackend { memory }
      func transaction<R, E: Error>(
        _ body: (any SecretTransaction) throws(E) -> R
      ) throws(SecretError) -> Result<R, E> { try memory.transaction(body) }
    }
    let base = Quiet()
    let failing = FailingBackend(base)
    failing.fail(.commit, with: SecretError(.io, "The test says so."))
    let backend = withoutPrompts ? failing.withoutPrompts : failing
    let error = #expect(throws: SecretError.self) {
      try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes("1"), for: first)
      }
    }
    #expect(error?.code == .io && error?.effect == SecretError.Effect.none)
    #expect(try base.lookUp(first) == nil && failing.count(of: .commit) == 1)
  }
}
