import Coffer
import CofferCore
import Observation
import Testing

// The declarations and uses of existing clients. The main test is that they compile.

private struct RedPanda: Codable, Sendable, Equatable {
  var name: String
  var isHungry = false
}

@Observable
private final class SecurityManager {
  @ObservationIgnored
  @SecurelyStoredValue<RedPanda>(key: "redPanda", service: "tests", backend: SecurityManager.backend)
  private var redPanda

  @ObservationIgnored
  @SecurelyStoredValue<String>(key: "password", service: "tests", backend: SecurityManager.backend)
  var storedPassword

  @ObservationIgnored
  @SecurelyStoredValue<Bool>(key: "flag", service: "tests", backend: SecurityManager.backend)
  var flag

  @ObservationIgnored
  @SecurelyStoredValue<[String]>(key: "names", service: "tests", backend: SecurityManager.backend)
  var names

  @ObservationIgnored
  @SecurelyStoredValue<[String: Int]>(key: "table", service: "tests", backend: SecurityManager.backend)
  var table

  static let backend = MemoryBackend()

  func run() throws {
    try self.$storedPassword.set("p@ssw0rd")
    #expect(self.storedPassword == "p@ssw0rd")
    try self.$storedPassword.remove()
    #expect(self.storedPassword == nil)

    try self.$redPanda.set(RedPanda(name: "Pabu"))
    try self.$redPanda.set(\.isHungry, to: true)
    #expect(self.redPanda == RedPanda(name: "Pabu", isHungry: true))

    try $flag.toggle()
    #expect(flag == true)
    try $names.append("a")
    try $names.replace("a", with: "b")
    try $names.togglePresence("c")
    #expect(names == ["b", "c"])
    try $table.update(key: "a", value: 1)
    #expect(table == ["a": 1])
  }
}

@MainActor
@Observable
private final class OnTheMainActor {
  @ObservationIgnored
  @SecurelyStoredValue<String>(key: "main", service: "tests", backend: MemoryBackend())
  var token
}

private actor AnActor {
  @SecurelyStoredValue<String>(key: "actor", service: "tests", backend: MemoryBackend())
  var token

  func run() throws -> String? {
    try $token.set("one")
    return token
  }
}

/// Sendable, with the value as a plain constant.
private final class AService: Sendable {
  let token = SecurelyStoredValue<String>(key: "service", service: "tests", backend: MemoryBackend())
}

@Suite(.timeLimit(.minutes(30))) struct CallSiteTests {
  @Test func aPropertyOfAnObservableClassWorks() throws { try SecurityManager().run() }

  @Test @MainActor func onTheMainActor() throws {
    let model = OnTheMainActor()
    try model.$token.set("one")
    #expect(model.token == "one")
  }

  @Test func aPropertyOfAnActorWorks() async throws { #expect(try await AnActor().run() == "one") }

  @Test func aConstantWorks() throws {
    let service = AService()
    try service.token.set("one")
    #expect(service.token.wrappedValue == "one")
  }
}
