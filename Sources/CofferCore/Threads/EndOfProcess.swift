internal import CLinux
internal import Glibc
internal import Synchronization

/// Work that is done before the process ends: at `exit`, at the end of `main`, and at SIGTERM, SIGINT and SIGHUP.
///
/// A signal is caught only if its action is the default one at the first call of ``run(_:)``. An action that the
/// program installs later replaces the handler. The handler wakes a thread, which does the work. The thread then ends the
/// process by the same signal, as the default action does, unless the program has installed an action since.
package enum EndOfProcess {
  /// The signals by which other programs and terminals ask a process to end.
  private static let signals = [SIGTERM, SIGINT, SIGHUP]
  private static let work = Mutex<(@Sendable () -> Void)?>(nil)
  /// The time that a supervisor such as docker gives a process before it kills it.
  private static let limit = Duration.seconds(10)

  /// Runs `body` when the process ends, for at most ten seconds, on a thread of its own. `body` may run twice, if a signal
  /// arrives during `exit`. Calls after the first have no effect.
  package static func run(_ body: @escaping @Sendable () -> Void) {
    let isFirst = work.withLock { work in
      if work != nil { return false }
      work = body
      return true
    }
    guard isFirst, coffer_prepare_to_catch() == 0 else { return }
    atexit { EndOfProcess.finish() }
    let failure = startThread {
      while true {
        let signal = coffer_wait_for_signal()
        EndOfProcess.finish()
        coffer_end_by(signal)
      }
    }
    guard failure == 0 else { return }
    for signal in signals { coffer_catch_if_default(signal) }
  }

  private static func finish() {
    // In a copy of the process by fork there is nothing to do: the original process does the work.
    guard coffer_is_original_process() != 0, let body = work.withLock({ $0 }) else { return }
    let isDone = Atomic(false)
    let failure = startThread {
      body()
      isDone.store(true, ordering: .releasing)
    }
    // The system has no thread to give.
    if failure != 0 { return body() }
    let deadline = ContinuousClock.now + limit
    while !isDone.load(ordering: .acquiring) && ContinuousClock.now < deadline {
      threadSleep(.milliseconds(1))
    }
  }
}
