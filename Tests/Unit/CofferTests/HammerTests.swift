import Coffer
import CofferCore
import CofferTestSupport
import Testing

/// Every wrapper, used by eight tasks at once. The thread sanitizer runs this suite:
/// `swift test --sanitize=thread --filter HammerTests`.
@Suite(.timeLimit(.minutes(30))) struct HammerTests {
  private struct Note: Codable, Sendable, Equatable, Identifiable {
    var id: Int
    var text = ""
  }

  private static let tasks = 8
  private static let rounds = 25

  private func hammer(_ body: @escaping @Sendable (_ task: Int, _ round: Int) async throws -> Void)
    async throws
  {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<Self.tasks {
        group.addTask { for round in 0..<Self.rounds { try await body(task, round) } }
      }
      try await group.waitForAll()
    }
  }

  @Test func secureValues() async throws {
    let backend = MemoryBackend()
    try await hammer { task, round in
      let counter = SecurelyStoredValue<Int>(key: "counter", service: "tests", backend: backend)
      let stream = counter.values
      _ = Count(observing: { _ = counter.wrappedValue })
      try await counter.update { $0 = ($0 ?? 0) + 1 }
      for await value in stream where value != nil { break }
      _ = counter.lastError
      let list = SecurelyStoredValue<[Int]>(key: "list", service: "tests", backend: backend)
      try await list.append(task * 100 + round)
    }
    #expect(try backend.text("counter") == "\(Self.tasks * Self.rounds)")
    let list = SecurelyStoredValue<[Int]>(key: "list", service: "tests", backend: backend)
    #expect(try await list.required().count == Self.tasks * Self.rounds)
  }

  @Test func valuesWithADefault() async throws {
    let backend = MemoryBackend()
    let shared = StoredValue(key: "count", default: 0, service: "tests", backend: backend)
    try await hammer { _, _ in
      try await shared.update { $0 += 1 }
      let flag = StoredValue(key: "flag", default: false, service: "tests", backend: backend)
      try await flag.toggle()
    }
    #expect(try await shared.get() == Self.tasks * Self.rounds)
    // An even number of toggles.
    let flag = StoredValue(key: "flag", default: true, service: "tests", backend: backend)
    #expect(try await flag.get() == false)
  }

  @Test func stores() async throws {
    let scope = SecretScope(service: "notes", backend: MemoryBackend())
    let store = try await Store<Note>(storage: scope)
    let follower = try await Store<Note>(storage: scope)
    try await hammer { task, round in
      let note = Note(id: task * 1000 + round)
      let stream = store.events
      try await store.insert(note)
      try await store.remove(Note(id: -1 - task)).insert(Note(id: note.id, text: "new")).run()
      for await _ in stream { break }
      _ = (store.items.count, follower.items.count, store.failures.count)
    }
    #expect(store.items.count == Self.tasks * Self.rounds)
    #expect(store.items.allSatisfy { $0.text == "new" })
    try await eventually("the other store did not follow") { follower.items == store.items }
  }

  @Test func defaultBackendsAndLeases() async throws {
    let backend = MemoryBackend()
    let token = SecurelyStoredValue<Int>(key: "token", service: "tests")
    try await DefaultBackend.with(backend) {
      try await hammer { _, _ in
        try await token.withLease(timeout: .seconds(300)) {
          let old = try await token.get() ?? 0
          try await token.set(old + 1)
        }
      }
    }
    #expect(try backend.text("token") == "\(Self.tasks * Self.rounds)")
  }
}
