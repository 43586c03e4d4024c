import CofferTestSupport
import Testing

/// What the compiler accepts of the wrappers, and what it says to the rest.
@Suite(.needs("swiftc")) struct CompilerTests {
  private func expectNoDiagnostics(_ code: String) throws {
    #expect(try LibraryFlags.diagnostics(of: "import Coffer\n" + code) == "")
  }

  /// The compiler must find the mistake, and not stop at it without saying why.
  private func expectDiagnostic(_ wanted: String, of code: String) throws {
    let found = try LibraryFlags.diagnostics(of: "import Coffer\n" + code)
    #expect(found.contains("error: " + wanted), "\(found)")
    #expect(!found.contains("failed to produce diagnostic"), "\(found)")
  }

  @Test func closuresOfUpdateCompile() throws {
    try expectNoDiagnostics(
      """
      struct Profile: Codable, Sendable, Equatable { var name = "", age = 0 }
      struct Model {
        @SecurelyStoredValue<Profile>(key: "profile", service: "s") var profile
        @SecurelyStoredValue<Int>(key: "number", service: "s") var number
        @StoredValue(key: "count", service: "s") var count = 0

        func change() throws {
          try $profile.update { $0?.name = "Ann" }
          try $profile.update { $0 = nil }
          try $profile.update { profile in
            guard profile == nil else { return }
            profile = Profile()
            profile?.age += 1
          }
          try $count.update { $0 += 1 }
          let next = try $number.update { number in
            number = (number ?? 0) + 1
            return number
          }
          let isOld: Bool = try $profile.update { ($0?.age ?? 0) > 60 }
          try $profile.update { profile in if profile == nil { throw CancellationError() } }
          _ = (next, isOld)
        }

        func changeLater() async throws {
          try await $profile.update { $0?.name = "Ann" }
          try await $count.update { $0 += 1 }
          let next = try await $number.update { number in
            number = (number ?? 0) + 1
            return number
          }
          _ = next
        }
      }
      """)
  }

  @Test func optionalTypesCompile() throws {
    try expectNoDiagnostics(
      """
      struct Model {
        @SecurelyStoredValue<String?>(key: "a", service: "s") var a
        @SecurelyStoredValue<String>(key: "b", service: "s") var b: String?
        @SecurelyStoredValue(key: "c", service: "s") var c: String?
        @StoredValue(key: "d") var d: Int?
        @StoredValue(key: "e") var e: Int? = nil
        @StoredValue<Int?>(key: "f", service: "s") var f
        @SecurelyStoredValue<String?>(key: "g", in: SecretScope(service: "s")) var g
      }
      let plain = SecurelyStoredValue<String?>(key: "a", service: "s")
      let inferred: SecurelyStoredValue<String?> = .init(key: "a")
      let withDefault = StoredValue<Int?>(key: "d")
      let given = StoredValue<Int?>(key: "d", default: 7)
      func generic<Value: Codable & Sendable>(_ type: Value.Type) -> SecurelyStoredValue<Value?> {
        SecurelyStoredValue(key: "g", service: "s")
      }
      func read() throws { let _: String?? = try plain.get() }
      """)
  }

  @Test func constantsMayBeStaticAndInSendableClasses() throws {
    try expectNoDiagnostics(
      """
      struct Keys { static let token = SecurelyStoredValue<String>(key: "token", service: "s") }
      final class Server: Sendable {
        let token = SecurelyStoredValue<String>(key: "token", service: "s")
        let limit = StoredValue(key: "limit", default: 10, service: "s")
        func rotate(_ text: String) throws { try token.set(text) }
      }
      actor Worker { @SecurelyStoredValue<String>(key: "token", service: "s") var token }
      @MainActor final class Model { @SecurelyStoredValue<String>(key: "token", service: "s") var token }
      @MainActor struct Shared { @SecurelyStoredValue<String>(key: "token", service: "s") static var token }
      """)
  }

  @Test func anAwaitedLeaseIsTheOneThatBlocksNoThread() throws {
    // The compiler warns of the `await` if the call is the one without `async`.
    try expectNoDiagnostics(
      """
      func wait(_ token: SecurelyStoredValue<Int>, _ store: VaultBackend, _ name: SecretIdentifier) async throws {
        try await token.withLease { print("leased") }
        let number = try await store.withLease(of: name) { _ in 7 }
        _ = number
      }
      """)
  }

  @Test func bytesCompileAndAreNotCodable() throws {
    try expectNoDiagnostics(
      """
      struct Model {
        @SecurelyStoredValue<SecretBytes>(key: "token", service: "s") var token
        @SecurelyStoredValue(key: "key", service: "s") var key: SecretBytes?
        func isSet() -> Bool { token?.isEqual(to: SecretBytes("")) == false }
      }
      """)
    try expectDiagnostic(
      "type 'SecretBytes' does not conform to protocol",
      of: "struct Model { @StoredValue<SecretBytes>(key: \"token\", service: \"s\") var token }")
  }

  #if !SwiftConfiguration
  @Test func aProductWithoutItsTraitNamesTheTrait() throws {
    try expectDiagnostic(
      "'SecretsProvider' is unavailable: Enable the trait SwiftConfiguration of the package coffer.",
      of: "import CofferConfigurationProvider\nlet a = SecretsProvider(in: SecretScope(service: \"s\"))")
  }
  #endif

  @Test func aStaticWrapperDoesNotCompile() throws {
    try expectDiagnostic(
      "static property 'token' is not concurrency-safe",
      of: "struct Keys { @SecurelyStoredValue<String>(key: \"token\") static var token }")
  }

  @Test func aWrapperInASendableClassDoesNotCompile() throws {
    try expectDiagnostic(
      "stored property '_token' of 'Sendable'-conforming class 'Server' is mutable",
      of: "final class Server: Sendable { @SecurelyStoredValue<String>(key: \"token\") var token }")
  }

  @Test func anUnsupportedTypeDoesNotCompile() throws {
    try expectDiagnostic(
      "generic class 'StoredValue' requires that 'Connection' conform to",
      of: """
        struct Connection: Sendable {}
        struct Model { @StoredValue(key: "connection") var connection = Connection() }
        """)
    try expectDiagnostic(
      "'init(key:in:service:backend:)' is unavailable: The value must be Codable, or a SecretBytes.",
      of: """
        struct Connection: Sendable {}
        struct Model { @SecurelyStoredValue<Connection>(key: "connection", service: "s") var connection }
        """)
  }

  @Test func aValueThatIsNotOptionalNeedsADefault() throws {
    try expectDiagnostic(
      "referencing initializer 'init(key:in:service:backend:coder:label:history:)' on 'StoredValue' requires that 'Int' conform",
      of: "struct Model { @StoredValue(key: \"count\") var count: Int }")
  }

  @Test func aPropertyCannotBeAssigned() throws {
    try expectDiagnostic(
      "setter for 'token' is unavailable: Use $NAME.set(_:), which can throw.",
      of: """
        struct Model {
          @SecurelyStoredValue<String>(key: "token") var token
          func change() { token = "x" }
        }
        """)
  }

  @Test func aMistakeInAnUpdateIsDiagnosed() throws {
    try expectDiagnostic(
      "value of type 'Profile' has no member 'nmae'",
      of: """
        struct Profile: Codable, Sendable { var name = "" }
        struct Model {
          @SecurelyStoredValue<Profile>(key: "profile") var profile
          func change() throws { try $profile.update { $0?.nmae = "x" } }
        }
        """)
    try expectDiagnostic(
      "call can throw but is not marked with 'try'",
      of: """
        struct Model {
          @StoredValue(key: "count") var count = 0
          func change() throws { $count.update { $0 += 1 } }
        }
        """)
  }
}
