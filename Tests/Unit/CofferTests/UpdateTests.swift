import Coffer
import CofferCore
import CofferTestSupport
import CofferTesting
import Testing

@Suite(.timeLimit(.minutes(30))) struct UpdateTests {
  private struct Own: Error {}

  let backend = ScriptedBackend()
  let counter: SecurelyStoredValue<Int>

  init() { counter = SecurelyStoredValue<Int>(key: "counter", service: "tests", backend: backend) }

  private var stores: Int { backend.edit { $0.metadata.count } }

  @Test func updateReturnsTheResultOfTheClosure() throws {
    let count = try counter.update { value in
      value = (value ?? 0) + 1
      return value
    }
    #expect(count == 1)
    try counter.update { $0 = 5 }
    #expect(try counter.get() == 5)
    try counter.update { $0 = nil }
    #expect(try backend.items(inService: nil).isEmpty)
  }

  @Test func anErrorOfTheClosureIsThrownAndStoresNothing() async throws {
    try await counter.set(1)
    let counter = counter
    func fail(_ value: inout Int?) throws {
      value = 2
      throw Own()
    }
    #expect(throws: Own.self) { try counter.update(fail) }
    await #expect(throws: Own.self) {
      try await counter.update { value in
        value = 2
        throw Own()
      }
    }
    #expect(try await counter.get() == 1)
    #expect(stores == 1)
  }

  @Test func anUnchangedValueIsNotStored() throws {
    try backend.store.write(" 7 ", "counter")
    try counter.update { _ in }
    try counter.update { $0 = 7 }
    #expect(stores == 0)
    #expect(try backend.text("counter") == " 7 ")
  }

  @Test func aWriteOfAnotherProcessDuringAnUpdateIsKept() throws {
    try counter.set(1)
    let first = Count()
    try counter.update { value in
      if first.value == 0 {
        first.add()
        #expect(throws: Never.self) { try backend.store.write("10", "counter") }
      }
      value = (value ?? 0) + 1
    }
    #expect(try counter.get() == 11)
  }

  @Test func compareAndSetStoresOnlyOverTheExpectedValue() async throws {
    #expect(try await !counter.set(1, ifCurrentIs: 0))
    #expect(try await counter.get() == nil)
    #expect(try await counter.set(1, ifCurrentIs: nil))
    #expect(try await !counter.set(2, ifCurrentIs: nil))
    #expect(try await counter.set(2, ifCurrentIs: 1))
    #expect(try await counter.get() == 2)
    #expect(try await counter.set(nil, ifCurrentIs: 2))
    #expect(try await counter.get() == nil)
  }

  @Test func compareAndSetDoesNotReplaceWhatAnotherProcessStoresMeanwhile() throws {
    try counter.set(1)
    let store = backend.store
    backend.afterNextLookup { try store.write("10", "counter") }
    #expect(try !counter.set(2, ifCurrentIs: 1))
    #expect(try counter.get() == 10)
  }

  @Test func compareAndSetComparesValuesAndNotBytes() throws {
    try backend.write(" 7 ", "counter")
    #expect(try counter.set(8, ifCurrentIs: 7))
    #expect(try counter.get() == 8)
  }

  @Test func ofManyCompareAndSetsOneSucceeds() async throws {
    let backend = MemoryBackend()
    let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<32 {
        group.addTask {
          let value = SecurelyStoredValue<Int>(key: "counter", service: "tests", backend: backend)
          return try await value.set(number, ifCurrentIs: nil)
        }
      }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(winners == 1)
  }

  @Test func requiredThrowsMissing() async throws {
    let error = thrown { () throws(SecretError) in _ = try counter.required() }
    #expect(error?.code == .missing)
    #expect(error?.identifier?.account == "counter")
    try await counter.set(3)
    #expect(try await counter.required() == 3)
  }

  @Test func aReadGivesTheValueOrTheErrorAtOnce() throws {
    #expect(counter.result == .success(nil))
    backend.edit { $0.lookupError = SecretError(.locked, "The keyring is locked.") }
    #expect(throws: SecretError.self) { try counter.result.get() }
    backend.edit { $0.lookupError = nil }
    #expect(counter.result == .success(nil))
  }

  @Test func theEditingMethodsHaveAsyncForms() async throws {
    struct Profile: Codable, Sendable, Equatable { var age: Int }
    let backend = MemoryBackend()
    let flag = SecurelyStoredValue<Bool>(key: "flag", service: "tests", backend: backend)
    try await flag.toggle()
    #expect(try await flag.get() == true)
    let list = SecurelyStoredValue<[Int]>(key: "list", service: "tests", backend: backend)
    try await list.append(1)
    #expect(try await list.replace(1, with: 2))
    try await list.togglePresence(3)
    #expect(try await list.get() == [2, 3])
    let table = SecurelyStoredValue<[String: Int]>(key: "table", service: "tests", backend: backend)
    try await table.update(key: "a", value: 1)
    #expect(try await table.get() == ["a": 1])
    let profile = SecurelyStoredValue<Profile>(key: "profile", service: "tests", backend: backend)
    try await profile.set(Profile(age: 1))
    #expect(try await profile.set(\.age, to: 2))
    #expect(try await profile.required().age == 2)
    try await profile.remove()
    #expect(try await profile.update { $0 == nil })
  }

  // MARK: Leases

  @Test func aValueThatIsRefreshedByManyIsRefreshedOnce() async throws {
    let backend = MemoryBackend()
    let refreshes = Count()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<50 {
        group.addTask {
          let token = SecurelyStoredValue<Int>(key: "token", service: "tests", backend: backend)
          return try await token.refreshed(timeout: .seconds(240), unless: { $0 > 0 }) { old in
            refreshes.add()
            await Task.yield()
            return (old ?? 0) + 1
          }
        }
      }
      for try await value in group { #expect(value == 1) }
    }
    #expect(refreshes.value == 1)
  }

  @Test func aFailedRefreshKeepsTheValueAndReleasesTheLease() async throws {
    let token = SecurelyStoredValue<Int>(key: "token", service: "tests", backend: MemoryBackend())
    try await token.set(1)
    await #expect(throws: Own.self) { try await token.refreshed(unless: { $0 > 1 }) { _ in throw Own() } }
    #expect(try await token.get() == 1)
    #expect(try await token.refreshed(unless: { $0 > 1 }) { _ in 2 } == 2)
    #expect(try await token.withLease { true })
  }

  @Test func aNewValueIsStoredAfterFailures() async throws {
    let failing = FailingBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: failing)
    for code in [SecretError.Code.io, .unavailable, .outcomeUnknown, .timedOut, .locked] {
      failing.fail(.store, with: SecretError(code, "Not now."), times: 3)
      let shown = Count()
      let value = try await token.refreshed(timeout: .seconds(120), unless: { _ in false }) { _ in
        shown.add()
        return "new \(code)"
      }
      #expect(shown.value == 1)
      #expect(try await token.get() == value && value == "new \(code)")
    }
  }

  @Test func aNewValueThatCannotBeStoredIsInTheError() async throws {
    let failing = FailingBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: failing)
    try await token.set("old")
    for code in [SecretError.Code.io, .conflict] {
      failing.fail(.store, with: SecretError(code, "Not now."))
      let error = await #expect(throws: UnstoredValue.self) {
        try await token.refreshed(timeout: .milliseconds(200), unless: { _ in false }) { _ in "canary-5up3r" }
      }
      #expect(try error?.value.string() == "canary-5up3r")
      #expect(error?.error.code == code)
      var dumped = ""
      if let error { dump(error, to: &dumped) }
      for text in [
        dumped, "\(String(describing: error))", String(reflecting: error),
      ] {
        #expect(!text.contains("canary-5up3r"))
      }
      failing.recover()
      #expect(try await token.get() == "old")
    }
  }

  /// Whoever cancels a task does not throw a value away that a service gives only once.
  @Test func aCancelledTaskStoresItsNewValue() async throws {
    let failing = FailingBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: failing)
    failing.fail(.store, with: SecretError(.io, "Not now."), times: 4)
    let task = Task {
      try await token.refreshed(timeout: .seconds(120), unless: { _ in false }) { _ in
        withUnsafeCurrentTask { $0?.cancel() }
        return "new"
      }
    }
    #expect(try await task.value == "new")
    #expect(try await token.get() == "new")
  }
}
