#if Keyring
internal import Synchronization

/// The time limit of a backend's method, or of a part of it, for everything that it waits for.
final class Deadline: Sendable {
  /// When it ends, its total length, and how many answers have arrived and how many were expected.
  private let state: Mutex<(end: ContinuousClock.Instant, total: Duration, came: Int, expected: Int)>

  init(after total: Duration) { state = Mutex((.now + total, total, 0, 0)) }

  /// Adds 50 milliseconds for each of `count` answers: several times what gnome-keyring with 3,000 items needs.
  func expectAnswers(_ count: Int) {
    let more = Duration.milliseconds(50) * count
    state.withLock { $0 = ($0.end + more, $0.total + more, $0.came, $0.expected + count) }
  }

  func extend(by more: Duration) { state.withLock { ($0.end, $0.total) = ($0.end + more, $0.total + more) } }

  func countAnswer() { state.withLock { $0.came += 1 } }

  /// The deadline of a part that may take at most `timeout`, and not longer than this deadline.
  func limited(to timeout: Duration) -> Deadline { timeLeft < timeout ? self : Deadline(after: timeout) }

  var end: ContinuousClock.Instant { state.withLock { $0.end } }

  private var timeLeft: Duration { end - .now }

  var hasPassed: Bool { timeLeft <= .zero }

  /// The failure of an operation that has not ended at the deadline.
  var failure: ServiceFailure { state.withLock { .timedOut($0.total, answers: $0.came, of: $0.expected) } }

  /// Returns the time that is left. Throws `.timedOut` if there is none.
  func remaining() throws(ServiceFailure) -> Duration {
    let timeLeft = timeLeft
    if timeLeft <= .zero { throw failure }
    return timeLeft
  }

  /// Returns the time that is left in milliseconds, as GLib takes it: at least 1, because 0 means no limit or a default
  /// limit. Throws `.timedOut` if there is none.
  func remainingMilliseconds() throws(ServiceFailure) -> Int32 {
    Int32(min(max(1, try remaining() / .milliseconds(1)), Double(Int32.max)))
  }

  /// Extends the deadline by the time since `start`.
  func leaveOut(since start: ContinuousClock.Instant) { state.withLock { $0.end += .now - start } }
}
#endif
