import Testing
import TokenStore

@testable import TokenRefresh

/// Two processes with one token: the built TokenRefresh, twice.
@Suite(.serialized, .timeLimit(.minutes(30))) struct TwoProcessTests {
  @Test(arguments: [TestStore.Kind.vault, .keyring])
  func noRefreshTokenIsUsedTwice(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let ledger = Ledger(path: store.file("ledger"))
    let run = { try Program.tokenRefresh([ledger.path] + $0, store.environment) }
    #expect(try await run(["sign-in"]).end() == .status(0))
    let programs = try (0..<2).map { _ in try run(["requests", "40"]) }
    for program in programs { #expect(try await program.end() == .status(0)) }

    let events = try ledger.events()
    // Each token is good for four requests. The person has signed in with token 0.
    #expect(events.filter { $0.kind == .given }.map(\.number) == Array(0..<19))
    #expect(events.count { $0.kind == .accepted } == 80)
    #expect(Set(events.filter { $0.kind == .accepted }.map(\.process)) == Set(programs.map(\.id)))

    let tokens = TokenStore(
      application: "com.example.token-refresh", login: ScriptedLogin(), backend: store.backend)
    #expect(try await tokens.accessToken() == "access-19")
    #expect(try await run(["sign-out"]).end() == .status(0))
    #expect(try await tokens.accessToken() == nil)
    #expect(try await run(["requests", "1"]).end() == .status(1))
  }
}
