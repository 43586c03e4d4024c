#if Keyring
import Coffer
import CofferTestSupport
import Foundation
import Synchronization
import Testing

/// Values of a program in a keyring that is locked and unlocked.
@Suite(.needsKeyring) struct WatchedSecretsTests {
  private final class Seen: Sendable {
    let values = Mutex<[Int: [String?]]>([:])

    func all(_ number: Int) -> [String?] { values.withLock { $0[number] ?? [] } }
  }

  @Test func lockingSixtyWatchedSecretsShowsNoPromptAndTellsNothing() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let clients = Clients(keyring: keyring)
    let prompter = try await KeyringPrompter(keyring)
    defer { prompter.kill() }
    let backend = keyring.backend { $0.mayPrompt = true }
    let secrets = (0..<60).map {
      SecurelyStoredValue<String>(key: "name \($0)", service: "svc", backend: backend)
    }
    for (number, secret) in secrets.enumerated() { try await secret.set("value \(number)") }
    let seen = Seen()
    let tasks = secrets.enumerated().map { number, secret in
      let values = secret.values
      return Task {
        for await value in values { seen.values.withLock { $0[number, default: []].append(value) } }
      }
    }
    defer { for task in tasks { task.cancel() } }
    try await eventually("a stream did not begin") { (0..<60).allSatisfy { seen.all($0).count == 1 } }

    let changes = backend.changes()
    var iterator = changes.makeAsyncIterator()
    try clients.lock()
    while let change = await iterator.next(), change.identifier != nil {}  // the change of everything
    try await Task.sleep(for: .seconds(1))  // for the reads that follow it
    #expect(try prompter.count() == 0)
    try clients.unlock()
    for number in 0..<60 {
      try clients.secretToolStore("new \(number)", account: "name \(number)")
    }
    try await eventually("a change after unlocking was not told") {
      (0..<60).allSatisfy { seen.all($0).last == "new \($0)" }
    }
    for number in 0..<60 { #expect(seen.all(number) == ["value \(number)", "new \(number)"]) }
    #expect(try prompter.count() == 0)
  }

  @Test func watchingALockedKeePassXCShowsNoPrompt() async throws {
    let keyring = try await PrivateKeyring(storingWith: "keepassxc")
    let clients = Clients(keyring: keyring)
    let backend = keyring.backend()
    try backend.store("value", SecretIdentifier(service: "svc", account: "alice"))
    try clients.lock()
    let changes = backend.changes()
    #expect(!FileManager.default.fileExists(atPath: keyring.path("scripted.log.search")))
    withExtendedLifetime(changes) {}
  }

  /// Here the stand-in for the program that shows prompts is asked, so that it counts in the test above. In a keyring
  /// of its own, because gnome-keyring ends when the stand-in does not answer.
  @Test func aReadByAPersonShowsAPrompt() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let clients = Clients(keyring: keyring)
    let prompter = try await KeyringPrompter(keyring)
    defer { prompter.kill() }
    let secret = SecurelyStoredValue<String>(
      key: "name", service: "svc", backend: keyring.backend { $0.mayPrompt = true })
    try await secret.set("value")
    try clients.lock()
    let read = Task { try await secret.get() }
    try await eventually("there was no prompt") { try prompter.count() > 0 }
    #expect(try prompter.count() == 1)
    prompter.kill()
    _ = await read.result
  }
}
#endif
