internal import CofferCore
internal import Dispatch
internal import Synchronization

extension ConformanceContext {
  /// Runs `body` on `count` threads at the same time, and throws the first error that `body` throws.
  func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    try wait(for: "the calls of \(count) threads") { group, fail in
      for index in 0..<count {
        // One queue for each thread: a concurrent queue may have too few threads for contention.
        DispatchQueue(label: "conformance.\(index)").async(group: group) {
          do { try body(index) } catch { fail(error) }
        }
      }
    }
  }

  /// Runs `body` in a task and blocks until it has ended.
  func await(_ body: @escaping @Sendable () async throws -> Void) throws {
    try wait(for: "the async calls") { group, fail in
      group.enter()
      Task(executorPreference: ConformanceExecutor.shared) {
        do { try await body() } catch { fail(error) }
        group.leave()
      }
    }
  }

  private func wait(
    for calls: String, _ start: (DispatchGroup, _ fail: @escaping @Sendable (any Error) -> Void) -> Void
  ) throws {
    let group = DispatchGroup()
    let failure = Mutex<(any Error)?>(nil)
    start(group) { error in failure.withLock { $0 = $0 ?? error } }
    if group.wait(timeout: .now() + options.checkTimeout / .seconds(1)) == .timedOut {
      throw Expectation(calls, expected: "an end within \(options.checkTimeout)", found: "none")
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }
}

/// Runs tasks on a queue, because the threads of the global executor may all be blocked by other tests.
final class ConformanceExecutor: TaskExecutor {
  static let shared = ConformanceExecutor()
  private let queue = DispatchQueue(label: "conformance.tasks")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
