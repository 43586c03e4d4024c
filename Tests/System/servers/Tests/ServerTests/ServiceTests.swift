import Coffer
import CofferServiceLifecycle
import CofferTesting
import Foundation
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Synchronization
import Testing

/// The end of a server.
@Suite(.timeLimit(.minutes(30))) struct ServiceTests {
  private let events = Events()

  @Test func aGracefulShutdownFlushesAndThenCloses() async throws {
    let backend = ClosableBackend(events)
    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        let service = SecretsService(closing: [backend]) { events.add("flushed") }
        group.addTask { try await service.run() }
        events.add("running")
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
      }
    }
    #expect(events.all == ["running", "flushed", "closed"])
  }

  /// The group cancels its services if one of them fails. What was not stored yet is stored all the same.
  @Test func aCancelledServiceFlushesAndCloses() async throws {
    let backend = ClosableBackend(events)
    let service = SecretsService(closing: [backend]) {
      try Task.checkCancellation()
      events.add("flushed")
    }
    let task = Task { try await service.run() }
    task.cancel()
    try await task.value
    #expect(events.all == ["flushed", "closed"])
  }

  @Test func aFailureToFlushIsThrownAfterTheBackendsAreClosed() async throws {
    let (one, two) = (ClosableBackend(events), ClosableBackend(events))
    one.fail()
    let service = SecretsService(closing: [one, two]) { throw SecretError(.io, "The disk is full.") }
    let task = Task { try await service.run() }
    task.cancel()
    let error = await #expect(throws: SecretError.self) { try await task.value }
    #expect(error?.code == .io)
    #expect(events.all == ["failed", "closed"])
  }

  /// The service is first in the group, so it ends last.
  @Test func theServiceEndsAfterTheServicesThatFollowIt() async throws {
    let directory = try TestDirectory()
    let vault = try directory.vault()
    try vault.set("token", "one")
    let service = SecretsService(closing: [vault]) { events.add("flushed") }
    let server = Server(events: events)
    var configuration = ServiceGroupConfiguration(services: [service, server], logger: Logger(label: "test"))
    configuration.maximumGracefulShutdownDuration = .seconds(30)
    let group = ServiceGroup(configuration: configuration)
    async let run: Void = group.run()
    await server.started()
    await group.triggerGracefulShutdown()
    try await run
    #expect(events.all == ["server ended", "flushed"])
    // The next call opens the vault again.
    #expect(try vault.text("token") == "one")
  }
}

private final class Events: Sendable {
  private let list = Mutex<[String]>([])
  func add(_ event: String) { list.withLock { $0.append(event) } }
  var all: [String] { list.withLock { $0 } }
}

private final class Server: Service {
  private let events: Events
  private let starts = AsyncStream<Void>.makeStream()

  init(events: Events) { self.events = events }

  func started() async { for await _ in starts.stream { return } }

  func run() async throws {
    starts.continuation.yield()
    try await gracefulShutdown()
    events.add("server ended")
  }
}

/// A backend that reports when it is closed.
private final class ClosableBackend: SecretBackend {
  private let base = MemoryBackend()
  private let events: Events
  private let fails = Atomic(false)

  init(_ events: Events) { self.events = events }

  func fail() { fails.store(true, ordering: .relaxed) }

  func close() throws(SecretError) {
    if fails.load(ordering: .relaxed) {
      events.add("failed")
      throw SecretError(.timedOut, "Another thread uses the backend.")
    }
    events.add("closed")
  }

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
