import Coffer
import ServiceLifecycle
import ServiceLifecycleTestKit
import Synchronization
import Testing

@testable import RotatingServer

/// The end of the server.
@Suite(.timeLimit(.minutes(30))) struct ServiceTests {
  private let backend = ClosableBackend()

  @Test func aGracefulShutdownClosesTheStore() async throws {
    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        let service = SecretsService(backend: backend)
        group.addTask { try await service.run() }
        #expect(!backend.isClosed)
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
      }
    }
    #expect(backend.isClosed)
  }

  /// The group cancels its services if one of them fails.
  @Test func aCancelledServiceClosesTheStore() async throws {
    let service = SecretsService(backend: backend)
    let task = Task { try await service.run() }
    task.cancel()
    try await task.value
    #expect(backend.isClosed)
  }
}

/// A backend that remembers whether it was closed.
private final class ClosableBackend: ForwardingBackend, @unchecked Sendable {
  private let closed = Atomic(false)
  init() { super.init(MemoryBackend()) }
  var isClosed: Bool { closed.load(ordering: .acquiring) }

  override func close() throws(SecretError) { closed.store(true, ordering: .releasing) }
}
