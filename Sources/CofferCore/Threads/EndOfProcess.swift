internal import CofferLibc
internal import Synchronization

/// Work that is done before the process ends by `exit` or by the end of `main`. If a signal ends the process, the work
/// is not done.
package enum EndOfProcess {
  private static let work = Mutex<(body: @Sendable () -> Void, process: pid_t)?>(nil)
  /// A supervisor such as Docker kills a process that takes longer to end.
  private static let limit = Duration.seconds(10)

  /// Runs `body` when the process ends, for at most ten seconds, on a thread of its own. Calls after the first have no
  /// effect.
  package static func run(_ body: @escaping @Sendable () -> Void) {
    let isFirst = work.withLock { work in
      if work != nil { return false }
      work = (body, getpid())
      return true
    }
    if isFirst { atexit { EndOfProcess.finish() } }
  }

  private static func finish() {
    // A forked copy of the process has nothing to do: the original process does the work.
    guard let (body, process) = work.withLock({ $0 }), process == getpid() else { return }
    let isDone = Atomic(false)
    let failure = startThread {
      body()
      isDone.store(true, ordering: .releasing)
    }
    // The system has no thread left.
    if failure != 0 { return body() }
    let deadline = ContinuousClock.now + limit
    while !isDone.load(ordering: .acquiring) && ContinuousClock.now < deadline {
      threadSleep(.milliseconds(1))
    }
  }
}
