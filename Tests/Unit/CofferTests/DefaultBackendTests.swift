@testable import Coffer
import CofferCore
import CofferTestSupport
import CofferTesting
import Testing

@Suite(.timeLimit(.minutes(30))) struct DefaultBackendTests {
  private static let global = SecurelyStoredValue<String>(key: "global", service: "tests")
  private struct Note: Codable, Sendable, Equatable, Identifiable { var id: String }
  private static let store = Store<Note>(storage: SecretScope(service: "notes"))

  @Test func aTaskUsesItsOwnBackend() async throws {
    let (one, two) = (MemoryBackend(), MemoryBackend())
    func useOne() throws {
      try DefaultBackend.with(one) {
        try Self.global.set("one")
        #expect(try DefaultBackend.current() === one)
      }
    }
    try useOne()
    try await DefaultBackend.with(two) {
      #expect(try await Self.global.get() == nil)
      try await Self.global.set("two")
      // Child tasks, and the threads for calls, use it too.
      try await withThrowingTaskGroup(of: String?.self) { group in
        group.addTask { try await Self.global.get() }
        for try await value in group { #expect(value == "two") }
      }
      DefaultBackend.with(one) { #expect(Self.global.wrappedValue == "one") }
      #expect(try await Self.global.update { $0 } == "two")
    }
    #expect(try one.text("global") == "one")
    #expect(try two.text("global") == "two")
  }

  @Test func valuesOfATaskSeeEachOther() async throws {
    // This one does not report what is stored.
    try await DefaultBackend.with(ScriptedBackend()) {
      let stream = Self.global.values
      let other = SecurelyStoredValue<String>(key: "global", service: "tests")
      try await other.set("one")
      var values = stream.makeAsyncIterator()
      #expect(await values.next() == .some(nil))
      #expect(await values.next() == .some("one"))
    }
  }

  @Test func aGlobalStoreHasTheItemsOfEachBackend() async throws {
    let (one, two) = (MemoryBackend(), MemoryBackend())
    try await DefaultBackend.with(one) { try await Self.store.insert(Note(id: "one")) }
    try await DefaultBackend.with(two) {
      try await Self.store.itemsHaveLoaded()
      #expect(Self.store.items.isEmpty)
      var events = Self.store.events.makeAsyncIterator()
      #expect(await events.next()?.operation == .loaded)
      try await Self.store.insert(Note(id: "two"))
      #expect(await events.next()?.items == [Note(id: "two")])
    }
    try await DefaultBackend.with(one) {
      try await eventually("the items were not loaded") { Self.store.items == [Note(id: "one")] }
      try one.write(#"{"id":"foreign"}"#, "foreign", service: "notes")
      try await eventually("the change did not appear") { Self.store.items.count == 2 }
    }
    #expect(try two.items(inService: "notes").map(\.identifier.account) == ["two"])
  }

  @Test func aBackendOfATaskIsReleasedAfterIt() async throws {
    weak var released: MemoryBackend?
    do {
      let backend = MemoryBackend()
      released = backend
      try await DefaultBackend.with(backend) {
        try await Self.global.set("one")
        try await Self.store.insert(Note(id: "one"))
      }
    }
    // The store's watch ends in a task.
    try await eventually("the backend was kept") { released == nil }
  }

  /// No other test uses the backend of the process.
  @Test func theBackendOfTheProcessCanBeReplaced() async throws {
    defer { DefaultBackend.replace(with: nil) }
    let (one, two) = (MemoryBackend(), MemoryBackend())
    DefaultBackend.replace(with: one)
    try await Self.global.set("one")
    let stream = Self.global.values
    DefaultBackend.replace(with: two)
    #expect(try await Self.global.get() == nil)
    try await Self.global.set("two")
    #expect(try one.text("global") == "one" && two.text("global") == "two")
    #expect(try await DefaultBackend.current() === two)
    try await Self.store.insert(Note(id: "two"))
    DefaultBackend.replace(with: one)
    try await Self.store.insert(Note(id: "one"))
    #expect(Self.store.items == [Note(id: "one")])
    DefaultBackend.replace(with: two)
    try DefaultBackend.with(one) { () throws in #expect(try Self.global.get() == "one") }
    // A stream stays with the backend with which it began.
    try one.write("one again", "global")
    var values = stream.makeAsyncIterator()
    #expect(await values.next() == .some("one"))
    #expect(await values.next() == .some("one again"))
    DefaultBackend.replace(with: nil)
    #expect(DefaultBackend.source.given == nil)
  }

  @Test func aGivenBackendIsNotReplaced() async throws {
    let own = MemoryBackend()
    let value = SecurelyStoredValue<String>(key: "given", service: "tests", backend: own)
    try await DefaultBackend.with(MemoryBackend()) { try await value.set("own") }
    #expect(try own.text("given") == "own")
  }

  @Test func theMemoryOfTheEnvironmentIsOneObject() throws {
    let configuration = BackendConfiguration(environment: ["COFFER_BACKEND": "memory"])
    let backend = try configuration.backend()
    #expect(backend is MemoryBackend)
    #expect(try configuration.backend() === backend)
    #expect(try configuration.choice().selection.name == .memory)
    let error = thrown { () throws(SecretError) in try configuration.record(backend: .memory) }
    #expect(error?.code == .configuration)
  }

  @Test func aFailingBackendFailsAsItIsTold() async throws {
    let backend = FailingBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    try await token.set("one")
    backend.fail(.lookUp, with: SecretError(.locked, "The test says so."), times: 2)
    for _ in 0..<2 { #expect(token.wrappedValue == nil && token.lastError?.code == .locked) }
    #expect(token.wrappedValue == "one")
    #expect(backend.count(of: .lookUp) == 3)
    backend.fail(.commit, with: SecretError(.io, "The disk is full."))
    let error = await #expect(throws: SecretError.self) { try await token.update { $0 = "two" } }
    #expect(error?.code == .io)
    #expect(try backend.base.text("token") == "one")
    backend.recover()
    try await token.update { $0 = "two" }
    #expect(try await token.get() == "two")
  }

  @Test func aFailingBackendThatDoesNotFailConforms() async throws {
    var options = SecretBackendConformance.Options()
    options.roundCount = 5
    try await SecretBackendConformance(options: options) { FailingBackend() }.run()
  }
}
