import CofferCore
import CofferTesting
import Testing

/// `withTransaction` over backends with transactions and without.
@Suite struct TransactionAdapterTests {
  /// A backend without transactions.
  private struct Plain: SecretBackend {
    let memory = MemoryBackend()

    func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
      try memory.lookUp(identifier)
    }
    func store(
      _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
    ) throws(SecretError) {
      try memory.store(secret, for: identifier, metadata: metadata)
    }
    func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try memory.remove(identifier) }
    func items(inService service: String?) throws(SecretError) -> [SecretItem] {
      try memory.items(inService: service)
    }
  }

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

  @Test(arguments: [MemoryBackend(), Plain()] as [any SecretBackend])
  func everyCallOfATransactionReachesTheBackend(_ backend: any SecretBackend) throws {
    try backend.store(SecretBytes(copying: "1"), for: first)
    let label = try backend.withTransaction { transaction throws(SecretError) in
      let value = try transaction.lookUp(first)?.copy()
      try transaction.store(
        value ?? SecretBytes(copying: "none"), for: second, metadata: SecretMetadata(label: "copy"))
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
        try transaction.store(SecretBytes(copying: "1"), for: first, metadata: nil)
        throw SecretError(.io, "It failed.")
      }
    }
    let (transactional, plain) = (MemoryBackend(), Plain())
    #expect(transactional.hasTransactions && !plain.hasTransactions)
    #expect(code { () throws(SecretError) in try store(transactional) } == .io)
    #expect(try transactional.item(first) == nil)
    #expect(code { () throws(SecretError) in try store(plain) } == .io)
    #expect(try plain.item(first) != nil)
  }

  @Test(arguments: [MemoryBackend(), Plain()] as [any SecretBackend])
  func aTransactionThatHasEndedThrowsConflict(_ backend: any SecretBackend) throws {
    let kept = Kept()
    try backend.withTransaction { kept.transaction = $0 }
    let ended = try #require(kept.transaction)
    #expect(code { () throws(SecretError) in _ = try ended.lookUp(first) } == .conflict)
    #expect(code { () throws(SecretError) in _ = try ended.item(first) } == .conflict)
    #expect(code { () throws(SecretError) in _ = try ended.remove(first) } == .conflict)
    #expect(
      code { () throws(SecretError) in
        try ended.store(SecretBytes(copying: "1"), for: first, metadata: nil)
      } == .conflict)
    #expect(try backend.item(first) == nil)
  }
}
