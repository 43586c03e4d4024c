import Coffer
import CofferConfigurationProvider
import CofferTesting
import Configuration
import Foundation
import Testing

/// Changes of secrets as updates of swift-configuration.
@Suite(.timeLimit(.minutes(30))) struct WatchTests {
  let directory: TestDirectory
  init() throws { directory = try TestDirectory() }

  /// Calls `react` with each text that is read for the key `token`, until it returns `false`. An error is its code.
  private func watch(
    _ provider: SecretsProvider, until react: (String?) throws -> Bool
  ) async throws -> [String?] {
    var seen: [String?] = []
    try await provider.watchValue(forKey: "token", type: .string) { updates in
      for await update in updates {
        let text: String?
        do {
          text = try update.get().value.map { "\($0.content)" }
        } catch let error as SecretError {
          text = "\(error.code)"
        }
        seen.append(text)
        if try !react(text) { break }
      }
    }
    return seen
  }

  private func content(_ text: String) -> String { "\(ConfigContent.string(text))" }

  @Test(arguments: TestStore.allCases) func eachChangeIsYielded(_ store: TestStore) async throws {
    let backend = try store.open(in: directory)
    let seen = try await watch(SecretsProvider(in: backend.scope)) { text in
      switch text {
      case nil: try backend.set("token", "one")
      case content("one"): try backend.set("token", "two")
      default: return false
      }
      return true
    }
    #expect(seen == [nil, content("one"), content("two")])
  }

  @Test func aRemovalIsYielded() async throws {
    let backend = MemoryBackend()
    try backend.set("token", "one")
    let seen = try await watch(SecretsProvider(in: backend.scope)) { text in
      if text == nil { return false }
      try backend.drop("token")
      return true
    }
    #expect(seen == [content("one"), nil])
  }

  /// Another object of the same vault, as another process has it.
  @Test func aChangeByAnotherProcessIsYielded() async throws {
    let (server, tool) = (try directory.vault(), try directory.vault())
    try tool.set("token", "one")
    let seen = try await watch(SecretsProvider(in: server.scope)) { text in
      if text == content("two") { return false }
      try tool.set("token", "two")
      return true
    }
    #expect(seen == [content("one"), content("two")])
  }

  @Test func onlyAnotherValueIsYielded() async throws {
    let backend = FailingBackend()
    try backend.set("token", "one")
    let seen = try await watch(SecretsProvider(in: backend.scope)) { text in
      if text == content("two") { return false }
      try afterTheNextLook(at: backend, from: { try $0.set("token", "one") }) { try $0.set("token", "two") }
      return true
    }
    #expect(seen == [content("one"), content("two")])
  }

  /// Makes the change `first`, and the change `second` when the provider has looked at the store in between.
  private func afterTheNextLook(
    at backend: FailingBackend, from first: (any SecretBackend) throws -> Void,
    _ second: @escaping @Sendable (any SecretBackend) throws -> Void
  ) throws {
    let looks = backend.count(of: .lookUp)
    try first(backend.base)
    Task.detached {
      while backend.count(of: .lookUp) == looks { try await Task.sleep(for: .milliseconds(1)) }
      backend.recover()
      try second(backend.base)
    }
  }

  @Test func aFailureAndItsEndAreYielded() async throws {
    let backend = FailingBackend()
    try backend.set("token", "one")
    let seen = try await watch(SecretsProvider(in: backend.scope)) { text in
      switch text {
      case content("one"):
        backend.fail(.lookUp, with: SecretError(.unavailable, "There is no bus."))
        try backend.base.set("token", "two")
      case "unavailable":
        backend.recover()
        try backend.base.set("token", "three")
      default: return false
      }
      return true
    }
    #expect(seen == [content("one"), "unavailable", content("three")])
  }

  @Test func aStoreThatBecomesLockedChangesNoValue() async throws {
    let backend = FailingBackend()
    try backend.set("token", "one")
    let seen = try await watch(SecretsProvider(in: backend.scope)) { text in
      if text != content("one") { return false }
      // One look at the store fails. It is taken before the next change is made.
      backend.fail(.lookUp, with: SecretError(.locked, "The keyring is locked."))
      try afterTheNextLook(at: backend, from: { try $0.set("token", "two") }) { try $0.set("token", "three") }
      return true
    }
    #expect(seen == [content("one"), content("three")])
  }

  /// There is neither a vault nor a keyring at first. In a process of its own, because it changes the environment.
  @Test func aStoreThatIsConfiguredLaterIsReached() async {
    await #expect(processExitsWith: .success) {
      let directory = try TestDirectory()
      let key = [UInt8](repeating: 7, count: 32)
      for name in ["COFFER_BACKEND", "COFFER_VAULT", "COFFER_KEY_FILE"] { unsetenv(name) }
      for name in ["CONFIG", "DATA", "STATE"] { setenv("XDG_\(name)_HOME", directory.path, 1) }
      setenv("COFFER_KEY", try VaultKey.text(of: SecretBytes(key)).string(), 1)
      var seen: [String] = []
      let provider = SecretsProvider(in: SecretScope(service: "server"))
      try await provider.watchValue(forKey: "token", type: .string) { updates in
        for await update in updates {
          switch update {
          case .failure(let error as SecretError):
            seen.append("\(error.code)")
            try FileManager.default.createDirectory(
              atPath: directory.path + "/coffer", withIntermediateDirectories: true,
              attributes: [.posixPermissions: 0o700])
            try VaultBackend.create(
              at: directory.path + "/coffer/default.vault", credential: .key(SecretBytes(key)))
          case .failure(let error): throw error
          case .success(let result) where result.value == nil:
            seen.append("absent")
            try await DefaultBackend.current().store(
              SecretBytes("x"), for: SecretIdentifier(service: "server", account: "token"))
          case .success: return
          }
        }
      }
      precondition(seen == ["noBackend", "absent"], "\(seen)")
    }
  }

  @Test func snapshotsAreYieldedForEachChangeOfTheService() async throws {
    let backend = MemoryBackend()
    let provider = SecretsProvider(in: backend.scope)
    var seen: [String] = []
    try await provider.watchSnapshot { updates in
      for await snapshot in updates {
        let texts = try ["user", "token"].map { account in
          let value = try snapshot.value(forKey: AbsoluteConfigKey([account]), type: .string).value
          return value.map { "\($0.content)" } ?? "-"
        }
        seen.append(texts.joined(separator: " "))
        switch seen.count {
        case 1: try backend.set("user", "a")
        case 2:
          try backend.set("user", "a")
          try backend.set("user", "x", service: "other")
          try backend.set("token", "t")
        default: return
        }
      }
    }
    #expect(seen == ["- -", "\(content("a")) -", "\(content("a")) \(content("t"))"])
  }

  /// The task ends, whether the store changes or not.
  @Test func cancellingTheTaskEndsTheUpdates() async throws {
    for backend in [MemoryBackend(), UnobservedBackend()] as [any SecretBackend] {
      let provider = SecretsProvider(in: backend.scope)
      let (started, start) = AsyncStream<Void>.makeStream()
      let task = Task {
        try await provider.watchValue(forKey: "token", type: .string) { updates in
          var count = 0
          for await _ in updates {
            count += 1
            start.yield()
          }
          return count
        }
      }
      for await _ in started { break }
      task.cancel()
      #expect(try await task.value == 1)
    }
  }
}

/// A backend that cannot tell of changes.
final class UnobservedBackend: SecretBackend {
  private let base = MemoryBackend()

  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? { try base.secret(identifier) }
  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try base.store(value, for: identifier, metadata: metadata, history: history)
  }
  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try base.remove(identifier, history: history)
  }
  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try base.items(inService: service)
  }
}
