import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Synchronization
import Testing

private struct UserPreferences: Codable, Sendable, Equatable {
  var prefersDarkMode = false
}

@Suite(.timeLimit(.minutes(30))) struct StoredValueTests {
  let backend = ScriptedBackend()

  private func value<Value: Codable & Sendable>(_ initial: Value) -> StoredValue<Value> {
    StoredValue(key: "value", default: initial, service: "tests", backend: backend)
  }

  @Test func theDefaultIsReadAndNotStored() throws {
    let limit = value(10)
    #expect(limit.wrappedValue == 10)
    #expect(try limit.get() == 10)
    #expect(limit.defaultValue == 10 && limit.key == "value")
    try limit.update { _ in }
    #expect(try backend.items(inService: nil).isEmpty)
  }

  @Test func resetDeletesTheValue() throws {
    let limit = value(10)
    try limit.set(11)
    #expect(limit.wrappedValue == 11)
    try limit.reset()
    try limit.reset()
    #expect(limit.wrappedValue == 10)
    #expect(try backend.items(inService: nil).isEmpty)
  }

  @Test func nilDeletesAnOptionalValue() throws {
    let name = StoredValue<String?>(key: "value", service: "tests", backend: backend)
    #expect(name.wrappedValue == nil)
    try name.set("x")
    #expect(try backend.text("value") == "x")
    try name.set(nil)
    #expect(try backend.items(inService: nil).isEmpty)
    try name.update { $0 = "y" }
    #expect(name.wrappedValue == "y")
    try name.update { $0 = nil }
    #expect(try backend.items(inService: nil).isEmpty)
  }

  @Test func whatDoesNotDecodeIsReportedAndKept() throws {
    let limit = value(10)
    try backend.write("ten", "value")
    #expect(limit.wrappedValue == 10)
    #expect(limit.lastError?.code == .decodingFailed)
    #expect(thrown { () throws(SecretError) in _ = try limit.get() }?.code == .decodingFailed)
    #expect(throws: SecretError.self) { try limit.update { $0 += 1 } }
    #expect(try backend.text("value") == "ten")
  }

  @Test func aFailedWriteIsThrown() throws {
    let limit = value(10)
    backend.edit { $0.storeError = SecretError(.io, "The disk is full.") }
    #expect(thrown { () throws(SecretError) in try limit.set(11) }?.code == .io)
    let number = value(0.5)
    #expect(thrown { () throws(SecretError) in try number.set(.nan) }?.code == .encodingFailed)
  }

  @Test func theEditingMethodsBeginWithTheDefault() async throws {
    let list = value(["a"])
    try await list.append("b")
    #expect(list.wrappedValue == ["a", "b"])
    try await list.reset()
    #expect(try await list.replace("a", with: "x"))
    #expect(try await list.get() == ["x"])
    try await list.togglePresence("x")
    #expect(list.wrappedValue == [])
    let table = StoredValue(key: "table", default: ["a": 1], service: "tests", backend: backend)
    try await table.update(key: "b", value: 2)
    #expect(table.wrappedValue == ["a": 1, "b": 2])
    let flag = StoredValue(key: "flag", default: true, service: "tests", backend: backend)
    try await flag.toggle()
    #expect(!flag.wrappedValue)
    let profile = StoredValue(
      key: "profile", default: UserPreferences(), service: "tests", backend: backend)
    #expect(try await profile.set(\.prefersDarkMode, to: true))
    #expect(profile.wrappedValue.prefersDarkMode)
  }

  @Test func valuesBeginWithTheDefault() async throws {
    let limit = value(10)
    var values = limit.values.makeAsyncIterator()
    #expect(await values.next() == 10)
    try await limit.set(11)
    #expect(await values.next() == 11)
    try backend.store.write("12", "value")
    backend.report(nil)
    #expect(await values.next() == 12)
    try await limit.reset()
    #expect(await values.next() == 10)
  }

  @Test func observationReportsChanges() throws {
    let limit = value(10)
    let changes = Count(observing: { _ = limit.wrappedValue })
    try value(0).set(11)
    #expect(changes.value == 1)
  }

  @Test func thePropertyOfABindingChangesNoOther() throws {
    struct Style: Codable, Sendable, Equatable { var theme = "light", size = 16 }
    struct Settings: Codable, Sendable, Equatable { var style = Style(), name = "" }
    let settings = value(Settings())
    let theme = settings.binding.style.theme
    let store = backend.store
    backend.afterNextLookup {
      try store.write(#"{"name":"Ann","style":{"size":20,"theme":"light"}}"#, "value")
    }
    try theme.set("dark")
    #expect(try settings.get() == Settings(style: Style(theme: "dark", size: 20), name: "Ann"))
    #expect(try theme.get() == "dark")
    let optional = SecurelyStoredValue<Int>(key: "value", service: "tests", backend: backend).binding
    #expect(thrown { () throws(SecretError) in _ = try optional.get() }?.code == .decodingFailed)
    try optional.set(nil)
    #expect(try backend.text("value") == nil)
  }

  @Test func aPropertyOfTwoClosuresIsSetByBoth() throws {
    struct Box: Sendable { var first = 1, second = 2 }
    let box = Mutex(Box())
    let first = StoredBinding<Box>(get: { box.withLock { $0 } }, set: { new in box.withLock { $0 = new } })
      .first
    try first.set(7)
    #expect(box.withLock { $0.first == 7 && $0.second == 2 })
  }

  @Test func theLabelOfTheProgramIsStoredAndAChangedOneStays() throws {
    let backend = MemoryBackend()
    let limit = StoredValue(key: "limit", default: 10, service: "tests", backend: backend, label: "Limit")
    try limit.set(11)
    var found = try #require(try backend.item(identifier("limit"))).metadata
    #expect(found.label == "Limit" && found.expires == nil && found.attributes.isEmpty)
    found.label = "Mine"
    found.attributes = ["more": "b"]
    try backend.store(SecretBytes("12"), for: identifier("limit"), metadata: found)
    try limit.update { $0 += 1 }
    found = try #require(try backend.item(identifier("limit"))).metadata
    #expect(found.label == "Mine" && found.attributes == ["more": "b"])
    #expect(try backend.text("limit") == "13")
    let token = SecurelyStoredValue<String>(
      key: "token", in: SecretScope(service: "tests", backend: backend), label: "Limit")
    try token.set("x")
    #expect(try backend.item(identifier("token"))?.metadata.label == "Limit")
  }

  @Test func anExpiryBelongsToTheValueThatItIsGivenWith() throws {
    let backend = MemoryBackend()
    let expires = Date(timeIntervalSince1970: 2_000_000_000)
    for label in [nil, "Token"] {
      let token = SecurelyStoredValue<String>(
        key: "token \(label ?? "")", service: "tests", backend: backend, label: label)
      try token.set("1", expires: expires)
      #expect(try token.item()?.metadata.expires == expires && token.get() == "1")
      try token.set("2")
      #expect(try token.item()?.metadata.expires == nil)
      try token.set("3", expires: expires)
      try token.update { $0 = "4" }
      #expect(try token.item()?.metadata.expires == nil)
    }
  }

  @Test func theMethodsForTasksDoTheSame() async throws {
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: MemoryBackend())
    let expires = Date(timeIntervalSince1970: 2_000_000_000)
    try await token.set("1", expires: expires)
    #expect(try await token.item()?.metadata.expires == expires)
    let isRemoved = try await token.remove()
    let isRemovedAgain = try await token.remove()
    let isErased = try await token.erase()
    #expect(isRemoved && !isRemovedAgain && !isErased)
  }

  @Test func nothingThatAProgramReplacesOrRemovesCanBeRestoredUnlessItSaysSo() throws {
    let backend = MemoryBackend()
    func number(_ key: String) throws -> Int { try backend.versions(of: identifier(key)).count }
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    let note = SecurelyStoredValue<String>(key: "note", service: "tests", backend: backend, history: .kept)
    for value in [token, note] {
      try value.set("1")
      try value.set("2")
      #expect(try value.remove())
      #expect(try !value.remove())
    }
    #expect(try number("token") == 0 && number("note") == 3)
    #expect(try backend.restore(identifier("token")) == nil && backend.restore(identifier("note")) != nil)
    #expect(try note.erase() && number("note") == 0 && note.get() == nil)
    #expect(try !note.erase())
    let count = StoredValue(key: "count", default: 0, service: "tests", backend: backend)
    for _ in 1...3 { try count.update { $0 += 1 } }
    try count.reset()
    #expect(try number("count") == 0)
  }
}
