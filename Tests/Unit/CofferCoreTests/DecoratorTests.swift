import CofferCore
import CofferTestSupport
import CofferTesting
import Synchronization
import Testing

/// No call passes a decorator by, whichever way a program makes it.
@Suite(.timeLimit(.minutes(30))) struct DecoratorTests {
  private final class ReadOnlyBackend: ForwardingBackend, @unchecked Sendable {
    override func decorate(_ access: any SecretAccess, for call: SecretCall) throws(SecretError) -> any SecretAccess {
      if call.isChange { throw SecretError(.denied, "This store is only for reading.") }
      return access
    }
  }

  private final class AuditingBackend: ForwardingBackend, @unchecked Sendable {
    let calls = Mutex<[SecretCall]>([])
    override func decorate(_ access: any SecretAccess, for call: SecretCall) -> any SecretAccess {
      calls.withLock { $0.append(call) }
      return access
    }
  }

  private let identifier: SecretIdentifier
  private let memory = MemoryBackend()

  init() throws {
    identifier = try SecretIdentifier(service: "service", account: "account")
    for value in ["1", "2"] { try memory.store(SecretBytes(value), for: identifier) }
  }

  @Test(arguments: [false, true]) func aReadOnlyStoreRefusesEveryChange(_ hasPrompts: Bool) throws {
    let backend = ReadOnlyBackend(hasPrompts ? WithPrompts(memory) : memory)
    for call in BackendCall.all {
      if call.isChange {
        let error = thrown { () throws(SecretError) in try call.make(on: backend, identifier) }
        #expect(error?.code == .denied, "\(call)")
      } else {
        try call.make(on: backend, identifier)
      }
    }
    #expect(try memory.versions(of: identifier).count == 2)
    #expect(try memory.lookUp(identifier)?.array() == Array("2".utf8))
  }

  @Test(arguments: [false, true]) func anAuditSeesEveryCall(_ hasPrompts: Bool) throws {
    for call in BackendCall.all {
      let memory = MemoryBackend()
      for value in ["1", "2"] { try memory.store(SecretBytes(value), for: identifier) }
      let backend = AuditingBackend(hasPrompts ? WithPrompts(memory) : memory)
      try call.make(on: backend, identifier)
      let seen = backend.calls.withLock { $0 }
      #expect(seen.contains { $0.isChange == call.isChange }, "\(call): \(seen)")
    }
  }

  /// A store with prompts, such as a keyring: `withoutPrompts` is another object.
  private final class WithPrompts: SecretBackend, PassingAccess {
    let memory: MemoryBackend
    let withoutPrompts: any SecretBackend
    init(_ memory: MemoryBackend) { (self.memory, withoutPrompts) = (memory, ForwardingBackend(memory)) }
    var base: any SecretAccess { memory }
    var features: SecretFeatures { memory.features }
    func transaction<R, E: Error>(
      _ body: (any SecretTransaction) throws(E) -> R
    ) throws(SecretError) -> Result<R, E> { try memory.transaction(body) }
    func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
      try memory.versions(of: identifier)
    }
    func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
      try memory.secret(identifier, version: version)
    }
    func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
      try memory.removedItems(inService: service)
    }
    func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try memory.erase(identifier) }
  }

  /// A backend of somebody's own does not have to notice that its transaction has ended.
  @Test func theLibraryEndsTransactionsOfAnyBackend() throws {
    let others: [any SecretBackend] = [
      ForwardingBackend(memory), AuditingBackend(memory), WithPrompts(memory), PlainBackend(),
    ]
    for backend in others + [memory] {
      var kept: (any SecretTransaction)?
      try backend.withTransaction { kept = $0 }
      let ended = try #require(kept)
      #expect(thrown { () throws(SecretError) in _ = try ended.lookUp(identifier) }?.code == .conflict)
      #expect(
        thrown { () throws(SecretError) in try ended.store(SecretBytes("3"), for: identifier) }?.code == .conflict)
      #expect(thrown { () throws(SecretError) in try ended.erase(identifier) }?.code == .conflict)
    }
  }

  /// A backend without transactions, whose steps can fail.
  private final class Steps: SecretBackend, PassingAccess {
    let failing: FailingBackend
    init(_ failing: FailingBackend) { self.failing = failing }
    var base: any SecretAccess { failing }
  }

  @Test func aMoveThatEndsHalfwaySaysThatItsCopyStays() throws {
    let failing = FailingBackend(memory)
    let new = try SecretIdentifier(service: "service", account: "new")
    failing.fail(.remove, with: SecretError(.denied, "The test says so."))
    let late = thrown { () throws(SecretError) in try Steps(failing).move(identifier, to: new, replacing: false) }
    #expect(late?.code == .denied && late?.effect == .changed)
    #expect(try memory.lookUp(new)?.array() == Array("2".utf8))
    failing.fail(.store, with: SecretError(.denied, "The test says so."))
    let early = thrown { () throws(SecretError) in try Steps(failing).move(identifier, to: new, replacing: true) }
    #expect(early?.effect == SecretError.Effect.none)
  }
}
