import Coffer
import ServiceLifecycle
import ServiceLifecycleTestKit
import Synchronization
import Testing

@testable import RotatingServer

/// The end of the server. The change of each value is delayed by an hour.
@Suite(.timeLimit(.minutes(30))) struct ServiceTests {
  private let backend = ClosableBackend()

  private enum Counter: VaultStorable {
    static let key = "counter"
    static let defaultValue = 0
    static let storage = SecretScope(service: "tests")
    static let saveDelay = Duration.seconds(3600)
  }

  init() throws {
    try DefaultBackend.withOnly(backend) { try VaultStored(Counter.self).set(1) }
    #expect(try backend.items(inService: "tests").isEmpty)
  }

  private func expectTheEnd() throws {
    #expect(try backend.items(inService: "tests").count == 1)
    #expect(backend.secretsAtTheEnd == 1)
  }

  @Test func aGracefulShutdownStoresAndThenCloses() async throws {
    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        let service = SecretsService(backend: backend)
        group.addTask { try await service.run() }
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
      }
    }
    try expectTheEnd()
  }

  /// The group cancels its services if one of them fails.
  @Test func aCancelledServiceStoresAndCloses() async throws {
    let service = SecretsService(backend: backend)
    let task = Task { try await service.run() }
    task.cancel()
    try await task.value
    try expectTheEnd()
  }
}

/// A backend that remembers how many secrets it has when it is closed.
private final class ClosableBackend: ForwardingBackend, @unchecked Sendable {
  private let count = Mutex<Int?>(nil)
  init() { super.init(MemoryBackend()) }
  var secretsAtTheEnd: Int? { count.withLock { $0 } }

  override func close() throws(SecretError) {
    let items = try base.items(inService: nil)
    count.withLock { $0 = items.count }
  }
}
