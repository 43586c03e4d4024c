import Coffer
import Testing

private struct MemorySecrets: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
  ) async throws {
    try await DefaultBackend.withOnly(MemoryBackend()) { try await body() }
  }
}

/// Every case has a backend of its own, though the values are global and the cases run at a time.
@Suite(MemorySecrets(), .timeLimit(.minutes(30))) struct TestScopeTests {
  private static let token = SecurelyStoredValue<String>(key: "token", service: "tests")
  private static let count = StoredValue<Int>(key: "count", default: 0, service: "tests")
  private struct Note: Codable, Sendable, Equatable, Identifiable { var id: String }
  private static let store = Store<Note>(storage: SecretScope(service: "notes"))

  @Test(arguments: 0..<150) func casesShareNothing(_ number: Int) async throws {
    #expect(Self.token.wrappedValue == nil && Self.count.wrappedValue == 0)
    try await Self.token.set("\(number)")
    try await Self.count.set(number)
    try await Self.store.insert(Note(id: "\(number)"))
    await Task.yield()
    #expect(try await Self.token.get() == "\(number)")
    #expect(Self.count.wrappedValue == number)
    #expect(Self.store.items.map(\.id) == ["\(number)"])
    #expect(try await DefaultBackend.current().items().count == 3)
  }
}
