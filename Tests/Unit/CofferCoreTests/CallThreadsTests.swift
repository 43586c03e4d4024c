import CofferCore
import CofferTestSupport
import Dispatch
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct CallThreadsTests {
  /// A backend whose reads wait until a gate is opened, at most 20 seconds.
  private final class GatedBackend: SecretBackend, PassingAccess {
    private let memory = MemoryBackend()
    var base: any SecretAccess { memory }
    let gate = DispatchSemaphore(value: 0)
    let entered = Atomic(0)
    let late = Atomic(0)

    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      entered.add(1, ordering: .relaxed)
      if gate.wait(timeout: .now() + 240) == .timedOut { late.add(1, ordering: .relaxed) }
      gate.signal()
      return nil
    }
  }

  @Test func waitingCallsDoNotKeepTasksFromRunning() async throws {
    let backend = GatedBackend()
    let identifier = try SecretIdentifier(service: "tests", account: "gated")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<16 {
        group.addTask {
          let isAbsent = try await backend.perform { try $0.lookUp(identifier) == nil }
          #expect(isAbsent)
        }
      }
      group.addTask {
        // The calls end only if this task gets a thread while all of them wait.
        while backend.entered.load(ordering: .relaxed) < 16 { await Task.yield() }
        await Task { _ = backend.gate.signal() }.value
      }
      try await group.waitForAll()
    }
    #expect(backend.late.load(ordering: .relaxed) == 0)
  }

  @Test func theNumberOfThreadsIsBoundedAndEveryJobRuns() async throws {
    let threads = CallThreads(limit: 4, idleTime: .milliseconds(20))
    let counts = Mutex((running: 0, most: 0, done: 0))
    for _ in 0..<200 {
      threads.submit {
        counts.withLock { counts in
          counts.running += 1
          counts.most = max(counts.most, counts.running)
        }
        counts.withLock { counts in
          counts.running -= 1
          counts.done += 1
        }
      }
    }
    try await eventually("not every job ran") { counts.withLock { $0.done } == 200 }
    #expect(counts.withLock { $0.most } <= 4)
    try await eventually("idle threads did not end") { threads.threadCount == 0 }
    #expect(await threads.run { 7 } == 7)
  }

  @Test func jobsBeginInTheOrderOfTheirSubmission() async throws {
    let threads = CallThreads(limit: 1, idleTime: .milliseconds(20))
    let order = Mutex<[Int]>([])
    for number in 0..<3000 { threads.submit { order.withLock { $0.append(number) } } }
    try await eventually("not every job ran") { order.withLock { $0.count } == 3000 }
    #expect(order.withLock { $0 } == Array(0..<3000))
  }
}
