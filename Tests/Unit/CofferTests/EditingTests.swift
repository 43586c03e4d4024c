import CofferTestSupport
import CofferCore
import Coffer
import Foundation
import Testing

@Suite(.timeLimit(.minutes(30))) struct EditingTests {
  struct Profile: Codable, Sendable, Equatable {
    var name: String
    var age: Int
    var nickname: String?
  }

  let backend = MemoryBackend()

  private func value<Value: Codable & Sendable>(_ type: Value.Type) -> SecurelyStoredValue<Value> {
    SecurelyStoredValue(key: "edited", service: "tests", backend: backend)
  }

  @Test func toggle() throws {
    let flag = value(Bool.self)
    try flag.toggle()
    #expect(flag.wrappedValue == true)
    try flag.toggle()
    #expect(flag.wrappedValue == false)
    try flag.toggle()
    #expect(flag.wrappedValue == true)
  }

  @Test func append() throws {
    let list = value([String].self)
    try list.append("a")
    try list.append("b")
    try list.append("a")
    #expect(list.wrappedValue == ["a", "b", "a"])
    let bytes = SecurelyStoredValue<[UInt8]>(key: "bytes", service: "tests", backend: backend)
    try bytes.append(7)
    #expect(bytes.wrappedValue == [7])
  }

  @Test func replace() throws {
    let list = value([String].self)
    #expect(try !list.replace("a", with: "x"))
    #expect(list.wrappedValue == nil)
    try list.set(["a", "b", "a"])
    #expect(try list.replace("a", with: "x"))
    #expect(list.wrappedValue == ["x", "b", "a"])
    #expect(try !list.replace("c", with: "y"))
    #expect(list.wrappedValue == ["x", "b", "a"])
  }

  @Test func togglePresence() throws {
    let list = value([String].self)
    try list.togglePresence("a")
    #expect(list.wrappedValue == ["a"])
    try list.set(["a", "b", "a"])
    try list.togglePresence("a")
    #expect(list.wrappedValue == ["b"])
    try list.togglePresence("a")
    #expect(list.wrappedValue == ["b", "a"])
  }

  @Test func updateChangesADictionary() throws {
    let table = value([String: Int].self)
    try table.update(key: "a", value: 1)
    try table.update(key: "b", value: 2)
    #expect(table.wrappedValue == ["a": 1, "b": 2])
    try table.update(key: "a", value: nil)
    try table.update(key: "b", value: nil)
    #expect(table.wrappedValue == [:], "the empty dictionary was removed")
    try table.remove()
    try table.update(key: "a", value: nil)
    #expect(table.wrappedValue == [:])
  }

  @Test func setChangesAProperty() throws {
    let profile = value(Profile.self)
    #expect(try !profile.set(\.age, to: 1))
    #expect(profile.wrappedValue == nil)
    try profile.set(Profile(name: "Ada", age: 36, nickname: "x"))
    #expect(try profile.set(\.age, to: 37))
    try profile.set(\.nickname, to: nil)
    #expect(profile.wrappedValue == Profile(name: "Ada", age: 37, nickname: nil))
  }

  @Test func aChangeWithoutAResultIsNotStored() throws {
    let scripted = ScriptedBackend()
    let list = SecurelyStoredValue<[String]>(key: "list", service: "tests", backend: scripted)
    try list.set(["a"])
    #expect(try !list.replace("c", with: "y"))
    #expect(scripted.edit { $0.metadata.count } == 1)
  }

  @Test func aValueThatDoesNotDecodeIsNotOverwritten() throws {
    try backend.write("not JSON", "edited")
    #expect(
      thrown { () throws(SecretError) in try value([String].self).append("a") }?.code == .decodingFailed
    )
    #expect(thrown { () throws(SecretError) in try value(Bool.self).toggle() }?.code == .decodingFailed)
    #expect(try backend.text("edited") == "not JSON")
  }

  @Test func aValueThatCannotBeReadIsNotOverwritten() throws {
    let scripted = ScriptedBackend()
    let list = SecurelyStoredValue<[String]>(key: "list", service: "tests", backend: scripted)
    try list.set(["a"])
    scripted.edit { $0.lookupError = SecretError(.locked, "The keyring is locked.") }
    #expect(thrown { () throws(SecretError) in try list.append("b") }?.code == .locked)
    #expect(list.lastError?.code == .locked)
    scripted.edit { $0.lookupError = nil }
    #expect(list.wrappedValue == ["a"])
  }

  @Test(arguments: [true, false])
  func concurrentChangesLoseNothing(transactional: Bool) async throws {
    // Without transactions, the changes of one process are still atomic.
    let backend: any SecretBackend = transactional ? MemoryBackend() : ScriptedBackend()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<8 {
        group.addTask {
          let list = SecurelyStoredValue<[Int]>(key: "list", service: "tests", backend: backend)
          for round in 0..<20 { try await list.append(writer * 100 + round) }
        }
      }
      try await group.waitForAll()
    }
    let list = SecurelyStoredValue<[Int]>(key: "list", service: "tests", backend: backend)
    let found = try #require(list.wrappedValue)
    let expected: [Int] = (0..<8).flatMap { writer in (0..<20).map { round in writer * 100 + round } }
    #expect(found.sorted() == expected)
  }

  @Test func aConcurrentChangeOfAnotherProcessIsKept() throws {
    let scripted = ScriptedBackend()
    let list = SecurelyStoredValue<[String]>(key: "list", service: "tests", backend: scripted)
    try list.set(["a"])
    let store = scripted.store
    scripted.afterNextLookup { try store.write(#"["a","foreign"]"#, "list") }
    try list.append("b")
    #expect(list.wrappedValue == ["a", "foreign", "b"])
  }

  @Test func aSetterMayReadItsOwnValue() throws {
    let profile = value(Curious.self)
    try profile.set(Curious(number: 1))
    Curious.look.set { [backend] in
      let other = SecurelyStoredValue<Curious>(key: "edited", service: "tests", backend: backend)
      #expect(other.wrappedValue?.number == 1)
    }
    try profile.set(\.checked, to: 2)
    #expect(profile.wrappedValue?.number == 2)
  }

  /// A type whose setter and `encode(to:)` call a closure.
  struct Curious: Codable, Sendable {
    var number: Int
    static let look = Callback()
    var checked: Int {
      get { number }
      set {
        Self.look.call()
        number = newValue
      }
    }
    init(number: Int) { self.number = number }
    func encode(to encoder: any Encoder) throws {
      Self.look.call()
      var container = encoder.singleValueContainer()
      try container.encode(number)
    }
    init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(Int.self) }
  }

  final class Callback: @unchecked Sendable {  // only under the lock
    private let lock = NSLock()
    private var body: (@Sendable () -> Void)?
    func set(_ body: @escaping @Sendable () -> Void) { lock.withLock { self.body = body } }
    func call() { lock.withLock { body }?() }
  }
}
