import Coffer
import Foundation
import Testing
import TokenStore

@testable import TokenRefresh

/// Two processes at a time refresh the token of a vault, and are killed at random times. Runs for less than a minute:
///
///     Examples/run --refresh
@Suite(.timeLimit(.minutes(30))) struct KillTests {
  private static let refreshes = 200

  @Test func killedProcessesLoseNoTokenAndUseNoneTwice() async throws {
    let store = try await TestStore(.vault)
    let ledger = Ledger(path: store.file("ledger"))
    let tokens = TokenStore(
      application: "com.example.token-refresh", login: ScriptedLogin(), backend: store.backend)
    try await tokens.signIn(PretendedServers.token(0, lifetime: 0))

    let files = ["a", "b"].map { store.file("acknowledged-\($0)") }
    let kills = try await withThrowingTaskGroup(of: Int.self) { group in
      for file in files {
        group.addTask { try await refresh(ledger, acknowledging: file, store.environment) }
      }
      return try await group.reduce(0, +)
    }

    let acknowledged = try files.map(acknowledgements)
    #expect(acknowledged.map(\.count) == [Self.refreshes, Self.refreshes])
    let token = SecurelyStoredValue<Token>(
      key: "oauth-token", service: "com.example.token-refresh", backend: store.backend)
    let found = Judgement(
      try ledger.events(), acknowledged.flatMap { $0 },
      stored: try PretendedServers.number(await token.required().refreshToken))
    print(
      """
      \(found.refreshes) refreshes, \(kills) kills, \(found.killsUnderLease) kills under the lease, \
      \(found.reusesByKilled) reuses by killed processes, \(found.reusesByLive) reuses by live processes, \
      \(found.lost) lost acknowledgements
      """)
    #expect(found.reusesByLive == 0)
    #expect(found.lost == 0)
    #expect(found.killsUnderLease > 0)
  }

  /// Starts a process again and again until 200 refreshes are acknowledged. Returns how many processes were killed.
  private func refresh(
    _ ledger: Ledger, acknowledging file: String, _ environment: [String: String]
  ) async throws -> Int {
    var kills = 0
    while true {
      let left = Self.refreshes - (try acknowledgements(file).count)
      guard left > 0 else { return kills }
      let program = try Program.tokenRefresh([ledger.path, "refreshes", "\(left)", file], environment)
      // Longer after each kill, so that a slow machine makes progress too.
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...150 + 5 * kills)))
      if program.isRunning {
        // Before the kill: another process can take the lease at once, and its line must come after this one. A second
        // use in the few microseconds before the kill is not noticed.
        try ledger.append(.killed, process: program.id)
        program.kill()
      }
      switch try await program.end() {
      case .signal(SIGKILL): kills += 1
      case .status(0): break
      case let end: throw Failure("A process ended with \(end).")
      }
    }
  }

  private func acknowledgements(_ file: String) throws -> [Judgement.Acknowledgement] {
    guard FileManager.default.fileExists(atPath: file) else { return [] }
    return try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ")
      guard words.count == 2, let number = Int(words[0]), let process = Int32(words[1]) else {
        throw Failure("There is the acknowledgement: \(line)")
      }
      return Judgement.Acknowledgement(number: number, process: process)
    }
  }
}
