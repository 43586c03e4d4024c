import Coffer
import CofferCore
import CofferTestSupport
import Foundation
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
    #expect(try DefaultBackend.current().items().count == 3)
  }
}

/// What such a scope means for the rest of its process, in a process of its own.
@Suite(.timeLimit(.minutes(30))) struct TestScopeProcessTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let key = [UInt8](repeating: 7, count: 32)

  init() throws {
    directory = try TemporaryDirectory(inMemory: true)
    path = directory.file("test.vault")
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
  }

  private func uses(_ more: [String: String] = [:]) throws -> [String: String] {
    let probe = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appending(path: "CofferProbe").path()
    var environment = ["COFFER_VAULT": path, "COFFER_KEY": try VaultKey.text(of: SecretBytes(key)).string()]
    environment.merge(more) { $1 }
    let result = try ChildProcess.run([probe, "scope"], environment: directory.environment(environment))
    #expect(result.status == 0, "\(result.errorText)")
    let lines = result.outputText.split(separator: "\n").map { $0.split(separator: ":", maxSplits: 1) }
    return Dictionary(uniqueKeysWithValues: lines.map { (String($0[0]), String($0[1])) })
  }

  @Test func afterTheFirstScopeNothingReachesTheRealStore() throws {
    let uses = try uses()
    for place in ["inside", "replaced", "again"] { #expect(uses[place] == " stored") }
    for place in ["detached", "late", "after", "restored"] {
      let text = uses[place] ?? ""
      #expect(text.hasPrefix(" noBackend: ") && text.contains("DefaultBackend.with(_:)"), "\(place):\(text)")
    }
    #expect(try VaultBackend(path: path, key: SecretBytes(key)).items().isEmpty)
  }

  @Test func aNamedBackendIsUsedOutsideOfAScope() throws {
    let uses = try uses(["COFFER_BACKEND": "memory"])
    #expect(uses.count == 7 && uses.values.allSatisfy { $0 == " stored" })
  }
}
