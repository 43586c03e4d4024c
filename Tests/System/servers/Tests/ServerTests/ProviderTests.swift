import Coffer
import CofferConfigurationProvider
import CofferTesting
import Configuration
import ConfigurationTesting
import Foundation
import Synchronization
import Testing

/// Secrets as values of swift-configuration.
@Suite(.timeLimit(.minutes(30))) struct ProviderTests {
  let directory: TestDirectory
  init() throws { directory = try TestDirectory() }

  /// The values that the suite of swift-configuration expects, as a shell would store them.
  private static let expected = [
    "string": "Hello", "other.string": "Other Hello", "int": "42", "other.int": "24", "double": "3.14",
    "other.double": "2.72", "bool": "true", "other.bool": "false", "bytes": "magic", "other.bytes": "magic2",
    "stringy.array": #"["Hello","World"]"#, "other.stringy.array": #"["Hello","Swift"]"#,
    "inty.array": "[42,24]", "other.inty.array": "[16,32]", "doubly.array": "[3.14,2.72]",
    "other.doubly.array": "[0.9,1.8]", "booly.array": "[true,false]",
    "other.booly.array": "[false,true,true]", "byteChunky.array": #"["bWFnaWM=","bWFnaWMy"]"#,
    "other.byteChunky.array": #"["bWFnaWM=","bWFnaWMy","bWFnaWM="]"#,
  ]

  @Test(arguments: TestStore.allCases) func theCompatibilitySuitePasses(_ store: TestStore) async throws {
    let backend = try store.open(in: directory)
    for (account, text) in Self.expected { try backend.set(account, text) }
    try await ProviderCompatTest(provider: SecretsProvider(in: backend.scope)).runTest()
  }

  @Test func valuesOfTheWrappersAreReadAsTheirTypes() throws {
    let backend = MemoryBackend()
    try SecurelyStoredValue<[String]>(key: "hosts", in: backend.scope).set(["a", "b,c"])
    try SecurelyStoredValue<Int>(key: "port", in: backend.scope).set(8080)
    let config = ConfigReader(provider: SecretsProvider(in: backend.scope))
    #expect(try config.requiredStringArray(forKey: "hosts") == ["a", "b,c"])
    #expect(try config.requiredInt(forKey: "port") == 8080)
  }

  @Test func textIsNotTrimmed() throws {
    let backend = MemoryBackend()
    try backend.set("pem", " -----BEGIN-----\n")
    let config = ConfigReader(provider: SecretsProvider(in: backend.scope))
    #expect(config.string(forKey: "pem") == " -----BEGIN-----\n")
  }

  @Test func theAccountIsTheKeyWithASeparator() throws {
    let backend = MemoryBackend()
    try backend.set("api.token", "dots")
    try backend.set("api-token", "dashes")
    let dots = ConfigReader(provider: SecretsProvider(in: backend.scope))
    let dashes = ConfigReader(provider: SecretsProvider(in: backend.scope, separator: "-"))
    #expect(dots.string(forKey: "api.token") == "dots")
    #expect(dots.scoped(to: "api").string(forKey: "token") == "dots")
    #expect(dashes.string(forKey: "api.token") == "dashes")
    let context: [String: ConfigContextValue] = ["host": "a"]
    #expect(dots.string(forKey: ConfigKey("api.token", context: context)) == "dots")
    let key = AbsoluteConfigKey(["api", "token"])
    #expect(
      try SecretsProvider(in: backend.scope).value(forKey: key, type: .string).encodedKey == "api.token")
  }

  @Test func aSecretOfAnotherServiceIsNoValue() throws {
    let backend = MemoryBackend()
    try backend.set("token", "x", service: "other")
    let provider = SecretsProvider(in: backend.scope)
    #expect(try provider.value(forKey: "token", type: .string).value == nil)
    #expect(try provider.snapshot().value(forKey: "token", type: .string).value == nil)
  }

  @Test func everyValueIsMarkedAsSecret() async throws {
    let backend = MemoryBackend()
    try backend.set("token", "hunter2")
    let provider = SecretsProvider(in: backend.scope)
    let key: AbsoluteConfigKey = "token"
    var values = [try provider.value(forKey: key, type: .string).value]
    values.append(try await provider.fetchValue(forKey: key, type: .string).value)
    values.append(try provider.snapshot().value(forKey: key, type: .bytes).value)
    try await provider.watchValue(forKey: key, type: .string) { updates in
      for await update in updates {
        values.append(try update.get().value)
        break
      }
    }
    #expect(values.map(\.?.isSecret) == [true, true, true, true])
    var text = "\(provider) \(provider.snapshot()) \(values)"
    dump(provider.snapshot(), to: &text)
    dump(provider, to: &text)
    #expect(!text.contains("hunter2"))
  }

  @Test func bytesOfAnotherTypeAreAnErrorWithoutTheValue() async throws {
    let backend = MemoryBackend()
    try backend.set("token", "hunter2")
    let provider = SecretsProvider(in: backend.scope)
    for type in [ConfigType.int, .double, .bool, .stringArray, .byteChunkArray] {
      let error = try #require(throws: SecretError.self) {
        try provider.value(forKey: "token", type: type)
      }
      #expect(error.code == .decodingFailed)
      #expect(error.identifier?.account == "token")
      #expect(!"\(error)".contains("hunter2"))
    }
    await #expect(throws: SecretError.self) { try await provider.fetchValue(forKey: "token", type: .int) }
    #expect(throws: SecretError.self) { try provider.snapshot().value(forKey: "token", type: .int) }
  }

  @Test func aKeyThatIsNoAccountIsAnError() throws {
    let provider = SecretsProvider(in: MemoryBackend().scope)
    let error = try #require(throws: SecretError.self) { try provider.value(forKey: [], type: .string) }
    #expect(error.code == .invalidIdentifier)
    #expect(throws: SecretError.self) { try provider.snapshot().value(forKey: [], type: .string) }
  }

  /// A missing secret is the only one without a value. Every other failure throws, by each way of reading.
  @Test(arguments: [SecretError.Code.locked, .unavailable, .tampered])
  func aFailureOfTheStoreIsThrown(_ code: SecretError.Code) async throws {
    let backend = FailingBackend()
    try backend.set("token", "hunter2")
    for call in [FailingBackend.Call.lookUp, .items] {
      backend.fail(call, with: SecretError(code, "The store fails."))
    }
    let provider = SecretsProvider(in: backend.scope)
    let key: AbsoluteConfigKey = "token"
    let thrown = [
      #expect(throws: SecretError.self) { try provider.value(forKey: key, type: .string) },
      await #expect(throws: SecretError.self) { try await provider.fetchValue(forKey: key, type: .string) },
      #expect(throws: SecretError.self) { try provider.snapshot().value(forKey: key, type: .string) },
      await #expect(throws: SecretError.self) {
        try await provider.watchValue(forKey: key, type: .string) { updates in
          for await update in updates { return try update.get() }
          return LookupResult(encodedKey: "", value: nil)
        }
      },
    ]
    #expect(thrown.map(\.?.code) == [code, code, code, code])
    #expect(thrown.map(\.?.identifier?.account) == ["token", "token", "token", "token"])
  }

  @Test func aMissingSecretIsReadFromTheNextProvider() throws {
    let backend = MemoryBackend()
    let config = ConfigReader(providers: [
      SecretsProvider(in: backend.scope), InMemoryProvider(values: ["token": "from memory"]),
    ])
    #expect(config.string(forKey: "token") == "from memory")
    try backend.set("token", "from the store")
    #expect(config.string(forKey: "token") == "from the store")
  }

  @Test func theDefaultBackendIsAskedForAtEachCall() async throws {
    let provider = SecretsProvider(in: SecretScope(service: "server"))
    let key: AbsoluteConfigKey = "token"
    for text in ["one", "two"] {
      let backend = MemoryBackend()
      try backend.set("token", text)
      try await DefaultBackend.withOnly(backend) {
        #expect(
          try provider.value(forKey: key, type: .string).value == ConfigValue(.string(text), isSecret: true))
        let fetched = try await provider.fetchValue(forKey: key, type: .string).value
        #expect(fetched?.content == .string(text))
        #expect(try provider.snapshot().value(forKey: key, type: .string).value?.content == .string(text))
      }
    }
  }

  /// Two secrets are always changed together. A snapshot that read one before and one after a change would see them
  /// differ.
  @Test(arguments: TestStore.allCases) func aSnapshotIsOfOneMoment(_ store: TestStore) async throws {
    let backend = try store.open(in: directory)
    let change = { @Sendable (number: Int) in
      try backend.withTransaction { transaction in
        for account in ["user", "password"] {
          try transaction.store(
            SecretBytes("\(number)"), for: SecretIdentifier(service: "server", account: account))
        }
      }
    }
    try change(0)
    let provider = SecretsProvider(in: backend.scope)
    let writer = RepeatingThread(change)
    defer { writer.stop() }
    var seen: Set<ConfigValue?> = []
    while seen.count < 50 {
      let snapshot = provider.snapshot()
      let user = try snapshot.value(forKey: "user", type: .string).value
      try #require(try snapshot.value(forKey: "password", type: .string).value == user)
      seen.insert(user)
    }
  }
}

/// A thread that calls a closure with 1, 2, 3 and so on. It goes on while tasks occupy the threads of the pool.
private final class RepeatingThread: Sendable {
  private let isStopped = Atomic(false)
  private let hasEnded = DispatchSemaphore(value: 0)

  init(_ body: @escaping @Sendable (Int) throws -> Void) {
    Thread.detachNewThread {
      defer { self.hasEnded.signal() }
      for number in 1... {
        if self.isStopped.load(ordering: .relaxed) { return }
        do { try body(number) } catch {
          Issue.record(error)
          return
        }
      }
    }
  }

  /// Waits for the call that is under way: what it uses may be gone afterwards.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    hasEnded.wait()
  }
}
