@testable import Coffer
import CofferTestSupport
import CofferCore
import Dispatch
import Foundation
import Synchronization
import Testing

/// A backend whose calls wait until a gate is opened, at most four minutes.
private final class GatedBackend: ForwardingBackend, @unchecked Sendable {  // its state is atomic
  let gate = DispatchSemaphore(value: 0)
  let entered = Atomic(0), late = Atomic(0)

  override func decorate(_ access: any SecretAccess, for call: SecretCall) throws(SecretError) -> any SecretAccess {
    entered.add(1, ordering: .relaxed)
    if gate.wait(timeout: .now() + 240) == .timedOut { late.add(1, ordering: .relaxed) }
    gate.signal()
    return access
  }
}

@Suite(.timeLimit(.minutes(30))) struct SecurelyStoredValueTests {
  let backend = ScriptedBackend()
  let token: SecurelyStoredValue<String>

  init() { token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend) }

  @Test func anAbsentValueIsNilWithoutAnError() throws {
    #expect(try token.get() == nil)
    #expect(token.wrappedValue == nil)
    #expect(token.lastError == nil)
  }

  @Test func aStoredValueIsReadBack() throws {
    try token.set("one")
    #expect(token.wrappedValue == "one")
    #expect(try backend.text("token") == "one")
    #expect(token.projectedValue === token)
  }

  @Test func slowCallsOfOneBackendDelayNoOther() async throws {
    let (slow, other) = (GatedBackend(MemoryBackend()), MemoryBackend())
    let (slowValue, value) = (
      SecurelyStoredValue<String>(key: "a", service: "tests", backend: slow),
      SecurelyStoredValue<String>(key: "a", service: "tests", backend: other)
    )
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          if number % 2 == 0 { _ = try await slow.perform { try $0.items() } } else { _ = try await slowValue.get() }
        }
      }
      while slow.entered.load(ordering: .relaxed) < 64 { await Task.yield() }
      #expect(try await other.perform { try $0.items() }.isEmpty)
      #expect(try await value.get() == nil)
      // No more of the slow calls had a thread.
      #expect(slow.entered.load(ordering: .relaxed) == 64)
      slow.gate.signal()
      try await group.waitForAll()
    }
    #expect(slow.late.load(ordering: .relaxed) == 0 && slow.entered.load(ordering: .relaxed) == 200)
  }

  @Test func aServiceAndABackendGoBeforeThoseOfTheScope() throws {
    let other = MemoryBackend()
    let scope = SecretScope(service: "tests", backend: backend)
    try SecurelyStoredValue(key: "a", in: scope).set("1")
    try SecurelyStoredValue(key: "a", in: scope, service: "else").set("2")
    try StoredValue(key: "a", default: "", in: scope, backend: other).set("3")
    try SecurelyStoredValue(key: "b", in: scope).set(SecretBytes("4"))
    let places = try [(backend, "tests", "a"), (backend, "else", "a"), (other, "tests", "a"), (backend, "tests", "b")]
      .map { (place: (any SecretBackend, String, String)) in
        try place.0.lookUp(SecretIdentifier(service: place.1, account: place.2))?.string()
      }
    #expect(places == ["1", "2", "3", "4"])
  }

  @Test func aWriteOfAnotherProcessIsReadAtOnce() throws {
    try token.set("one")
    try backend.store.write("rotated", "token")
    #expect(token.wrappedValue == "rotated")
    #expect(try token.get() == "rotated")
  }

  @Test func bytesAreStoredAsTheyAre() async throws {
    let key = SecurelyStoredValue<SecretBytes>(key: "key", service: "tests", backend: backend)
    #expect(try await key.get() == nil)
    try await key.set(SecretBytes([0, 255, 10]))
    #expect(try backend.get("key") == [0, 255, 10])
    try backend.write("rotated", "key")
    #expect(try await key.required().string() == "rotated")
    var values = key.values.makeAsyncIterator()
    #expect(try await values.next()??.string() == "rotated")
    try await key.update { $0 = nil }
    #expect(try backend.text("key") == nil)
  }

  @Test func aFailedReadIsNilWithAnErrorAndGetThrows() throws {
    try token.set("one")
    for code in [SecretError.Code.locked, .unavailable, .denied, .timedOut, .tampered] {
      backend.edit { $0.lookupError = SecretError(code, "The test says so.") }
      #expect(token.wrappedValue == nil)
      #expect(token.lastError?.code == code)
      #expect(thrown { () throws(SecretError) in _ = try token.get() }?.code == code)
      #expect(token.lastError?.identifier?.account == "token")
    }
    backend.edit { $0.lookupError = nil }
    #expect(token.wrappedValue == "one")
    #expect(token.lastError == nil)
  }

  @Test func aFailedSetKeepsTheValueAndPublishesNothing() throws {
    try token.set("one")
    let changes = Count(observing: { _ = token.wrappedValue })
    backend.edit { $0.storeError = SecretError(.io, "The disk is full.") }
    #expect(thrown { () throws(SecretError) in try token.set("two") }?.code == .io)
    #expect(token.lastError?.code == .io)
    #expect(changes.value == 0)
    backend.edit { $0.storeError = nil }
    #expect(try token.get() == "one")
    #expect(token.lastError == nil)
    try token.set("two")
    #expect(changes.value == 1)
  }

  @Test func aFailedRemoveThrowsAndPublishesNothing() throws {
    try token.set("one")
    let changes = Count(observing: { _ = token.wrappedValue })
    backend.edit { $0.removeError = SecretError(.denied, "The store is read-only.") }
    #expect(thrown { () throws(SecretError) in try token.remove() }?.code == .denied)
    #expect(thrown { () throws(SecretError) in try token.set(nil) }?.code == .denied)
    #expect(changes.value == 0)
    #expect(token.wrappedValue == "one")
  }

  @Test func setKeepsTheMetadata() throws {
    let identifier = try SecretIdentifier(service: "tests", account: "token")
    try backend.store(SecretBytes("x"), for: identifier, metadata: SecretMetadata(label: "A label"))
    try token.set("one")
    #expect(try backend.item(identifier)?.metadata.label == "A label")
  }

  @Test func setReplacesAValueThatDoesNotDecode() throws {
    let number = SecurelyStoredValue<Int>(key: "number", service: "tests", backend: backend)
    try backend.write("not a number: canary", "number")
    #expect(number.wrappedValue == nil)
    #expect(number.lastError?.code == .decodingFailed)
    #expect(!String(reflecting: number.lastError).contains("canary"))
    #expect(try backend.text("number") == "not a number: canary")
    try number.set(7)
    #expect(try number.get() == 7)
    #expect(number.lastError == nil)
  }

  @Test func aValueThatDoesNotDecodeCanBeRemoved() throws {
    let number = SecurelyStoredValue<Int>(key: "number", service: "tests", backend: backend)
    try backend.write("not a number", "number")
    try number.remove()
    #expect(try number.get() == nil)
  }

  @Test func twoValuesWithOneKeySeeEachOther() throws {
    let other = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    let third = SecurelyStoredValue<String>(key: "token", service: "another", backend: backend)
    let changes = Count(observing: { _ = other.wrappedValue })
    let thirds = Count(observing: { _ = third.wrappedValue })
    try token.set("one")
    #expect(other.wrappedValue == "one")
    #expect(changes.value == 1)
    #expect(third.wrappedValue == nil)
    #expect(thirds.value == 0)
  }

  @Test func keysAreComparedByBytes() throws {
    let composed = SecurelyStoredValue<String>(key: "caf\u{E9}", service: "tests", backend: backend)
    let decomposed = SecurelyStoredValue<String>(key: "cafe\u{301}", service: "tests", backend: backend)
    try composed.set("1")
    #expect(decomposed.wrappedValue == nil)
  }

  @Test func anInvalidKeyIsAnErrorAtTheFirstUse() async throws {
    let impossible = SecurelyStoredValue<String>(key: "", service: "tests", backend: backend)
    #expect(impossible.lastError == nil)
    #expect(impossible.wrappedValue == nil)
    #expect(impossible.lastError?.code == .invalidIdentifier)
    #expect(thrown { () throws(SecretError) in try impossible.set("x") }?.code == .invalidIdentifier)
    var values: [String?] = []
    for await value in impossible.values { values.append(value) }
    #expect(values == [nil])
  }

  @Test func theDefaultServiceIsTheExecutablesName() throws {
    let anonymous = SecurelyStoredValue<String>(key: "anonymous", backend: backend)
    try anonymous.set("one")
    let name = try #require(Bundle.main.executablePath.map { URL(fileURLWithPath: $0).lastPathComponent })
    #expect(try backend.text("anonymous", service: name) == "one")
  }

  @Test(arguments: [
    ("/usr/bin/app", "other", "app"), ("/usr/bin/app (deleted)", "other", "app"), (nil, "./app", "app"),
    (nil, nil, "swift"), ("/", nil, "swift"),
  ])
  func theExecutablesNameIsTheLastPartOfItsPath(link: String?, argument: String?, name: String) {
    #expect(Executable.name(link: link, argument) == name)
  }
}
