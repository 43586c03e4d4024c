@testable import Coffer
import CofferCore
import CofferTestSupport
import CofferTesting
import Foundation
import Testing

/// Defects of earlier libraries of this kind that the other suites do not name, each with the behaviour here.
@Suite(.timeLimit(.minutes(30))) struct FamilySemanticsTests {
  private struct Note: Codable, Sendable, Equatable, Identifiable {
    var id: String
    var text = ""
  }

  private let backend = FailingBackend()
  private var scope: SecretScope { SecretScope(service: "notes", backend: backend) }
  private func load() async throws -> Store<Note> { try await Store<Note>(storage: scope) }

  // MARK: Single values

  /// There, a stream held the latest plaintext for as long as it existed.
  @Test func aStreamKeepsNoValueThatWasTaken() async throws {
    let backend = WithoutValues()
    let value = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    let hub = try HubRegistry.shared.hub(
      for: SecretIdentifier(service: "tests", account: "token"), source: BackendSource(given: backend))
    let stream = hub.readings()
    var iterator = stream.makeAsyncIterator()
    let first = await iterator.next()
    guard case .success(nil) = first else {
      Issue.record("The stream did not begin with an absent value.")
      return
    }
    try await value.set("canary")
    weak var taken: SecretBytes?
    if case .success(let stored?) = await iterator.next() { taken = stored.secret }
    #expect(taken == nil)
    withExtendedLifetime((stream, value)) {}
  }

  /// Memory would keep the value that is set.
  private final class WithoutValues: ForwardingBackend, @unchecked Sendable {
    init() { super.init(MemoryBackend()) }
    override func decorate(_ access: any SecretAccess, for call: SecretCall) -> any SecretAccess {
      Access(base: access)
    }
  }

  private struct Access: PassingAccess {
    let base: any SecretAccess
    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {}
  }

  // MARK: Stores

  @Test func aLateSubscriberGetsTheLatestEvent() async throws {
    let store = try await load()
    var early = store.events.makeAsyncIterator()
    let first = await early.next()
    #expect(first?.operation == .loaded)
    try await store.insert([Note(id: "a"), Note(id: "b")])
    var late = store.events.makeAsyncIterator()
    let latest = await late.next()
    #expect(latest?.operation == .insert && latest?.items.map(\.id) == ["a", "b"])
  }

  /// The order is the backend, then memory, then the event.
  @Test func anEventComesAfterTheItemIsStoredAndInMemory() async throws {
    let store = try await load()
    let (backend, events) = (backend, store.events)
    let reader = Task {
      for await event in events where event.operation == .insert {
        return (store.items.map(\.id), try backend.base.items(inService: "notes").count == 1)
      }
      return ([], false)
    }
    try await store.insert(Note(id: "a"))
    let (inMemory, isStored) = try await reader.value
    #expect(inMemory == ["a"] && isStored)
  }

  @Test func aFailedInsertChangesNeitherMemoryNorEvents() async throws {
    let store = try await load()
    let events = store.events
    backend.fail(.commit, with: SecretError(.io, "The disk is full."))
    await #expect(throws: SecretError.self) { try await store.insert(Note(id: "lost")) }
    #expect(store.items.isEmpty)
    backend.recover()
    try await store.insert(Note(id: "kept"))
    var seen: [String] = []
    for await event in events {
      seen += event.items.map(\.id)
      if event.operation == .insert { break }
    }
    #expect(seen == ["kept"])
    #expect(try await load().items.map(\.id) == ["kept"])
  }

  /// In an earlier library, an item's key was the name of a file.
  @Test func aKeyMayContainAnyCharacter() async throws {
    let keys = [
      "../../etc/passwd", "a/b", "ä", "a\u{308}", " ", "\n", ".", String(repeating: "x", count: 1024),
    ]
    let store = try await load()
    try await store.insert(keys.map { Note(id: $0) })
    #expect(try await load().items.map { Array($0.id.utf8) } == keys.map { Array($0.utf8) })
  }
}
