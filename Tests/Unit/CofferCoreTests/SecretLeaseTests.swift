import CofferCore
import CofferTestSupport
import Testing

@Suite(.timeLimit(.minutes(30))) struct SecretLeaseTests {
  let backend = MemoryBackend()
  let identifier: SecretIdentifier

  init() throws { identifier = try SecretIdentifier(service: "tests", account: "leased") }

  private func fail() { Issue.record("two leases") }

  @Test func onlyOneHoldsALease() throws {
    let lease = try #require(try backend.tryLease(identifier))
    #expect(try backend.tryLease(identifier) == nil)
    #expect(try backend.tryLease(SecretIdentifier(service: "tests", account: "another")) != nil)
    lease.release()
    lease.release()
    #expect(try backend.tryLease(identifier) != nil)
  }

  @Test func aReleasedObjectReleasesItsLease() throws {
    do { _ = try backend.tryLease(identifier) }
    #expect(try backend.tryLease(identifier) != nil)
  }

  @Test func theWaitEndsAtItsDeadline() async throws {
    let lease = try #require(try backend.tryLease(identifier))
    let (backend, identifier) = (backend, identifier)
    func call() throws { try backend.withLease(of: identifier, timeout: .milliseconds(20)) { _ in fail() } }
    let error = #expect(throws: SecretError.self) { try call() }
    #expect(error?.code == .timedOut)
    let other = await #expect(throws: SecretError.self) {
      try await backend.withLease(of: identifier, timeout: .milliseconds(20)) { _ in
        await Task.yield()
        fail()
      }
    }
    #expect(other?.code == .timedOut)
    lease.release()
    #expect(try await backend.withLease(of: identifier) { _ in 7 } == 7)
  }

  @Test func theErrorOfTheBodyIsThrownAndTheLeaseReleased() async throws {
    struct Own: Error {}
    let (backend, identifier) = (backend, identifier)
    #expect(throws: Own.self) { try backend.withLease(of: identifier) { _ in throw Own() } }
    await #expect(throws: Own.self) {
      try await backend.withLease(of: identifier) { _ in
        await Task.yield()
        throw Own()
      }
    }
    #expect(try backend.tryLease(identifier) != nil)
  }

  @Test func aCancelledTaskStopsWaiting() async throws {
    let lease = try #require(try backend.tryLease(identifier))
    let (backend, identifier) = (backend, identifier)
    let task = Task {
      try await backend.withLease(of: identifier, timeout: .seconds(600)) { _ in await Task.yield() }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    lease.release()
  }

  @Test func aBackendWithoutLeasesSaysSo() throws {
    let plain = PlainBackend()
    let error = #expect(throws: SecretError.self) { try plain.withLease(of: identifier) { _ in } }
    #expect(error?.code == .unsupported)
  }

  @Test func waitingForLeasesBlocksNoThreadForCalls() async throws {
    let lease = try #require(try backend.tryLease(identifier))
    let (backend, identifier) = (backend, identifier)
    let count = Count()
    try await withThrowingTaskGroup(of: Void.self) { group in
      // More than there are threads for calls.
      for _ in 0..<100 {
        group.addTask {
          try await backend.withLease(of: identifier, timeout: .seconds(200)) { _ in
            let item = try backend.item(identifier)
            #expect(item == nil)
            count.add()
          }
        }
      }
      for _ in 0..<100 {
        let item = try backend.item(identifier)
        #expect(item == nil)
      }
      lease.release()
      try await group.waitForAll()
    }
    #expect(count.value == 100)
  }
}
