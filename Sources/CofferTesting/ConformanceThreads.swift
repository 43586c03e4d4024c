internal import CofferCore
internal import Dispatch
internal import Synchronization

extension ConformanceContext {
  /// Runs `body` on `count` threads at the same time, and throws the first error that `body` throws.
  func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    try wait(for: "the calls of \(count) threads") { group, failure in
      for index in 0..<count {
        // One queue for each thread: a concurrent queue may have too few threads for contention.
        DispatchQueue(label: "conformance.\(index)").async(group: group) {
          do { try body(index) } catch { failure.note(error) }
        }
      }
    }
  }

  /// Runs `body` in a task and blocks until it has ended.
  func await(_ body: @escaping @Sendable () async throws -> Void) throws {
    try wait(for: "the async calls") { group, failure in
      group.enter()
      Task(executorPreference: ConformanceExecutor.shared) {
        do { try await body() } catch { failure.note(error) }
        group.leave()
      }
    }
  }

  private func wait(for calls: String, _ start: (DispatchGroup, FirstError) -> Void) throws {
    let (group, failure) = (DispatchGroup(), FirstError())
    start(group, failure)
    if group.wait(timeout: .now() + options.checkTimeout / .seconds(1)) == .timedOut {
      throw Expectation(calls, expected: "an end within \(options.checkTimeout)", found: "none")
    }
    if let error = failure.error { throw error }
  }

  private final class FirstError: Sendable {
    private let first = Mutex<(any Error)?>(nil)
    var error: (any Error)? { first.withLock { $0 } }
    func note(_ error: any Error) { first.withLock { $0 = $0 ?? error } }
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
