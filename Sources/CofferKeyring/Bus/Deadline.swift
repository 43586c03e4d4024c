#if Keyring
internal import Synchronization

/// The time that a method of the backend, or a part of it, has for everything that it waits for.
final class Deadline: Sendable {
  /// The time in all, for messages.
  let total: Duration
  private let end: Mutex<ContinuousClock.Instant>

  init(after total: Duration) {
    self.total = total
    end = Mutex(.now + total)
  }

  /// The deadline of a part that has at most `timeout`: this deadline if it is earlier.
  func limited(to timeout: Duration) -> Deadline { timeLeft < timeout ? self : Deadline(after: timeout) }

  private var timeLeft: Duration { end.withLock { $0 } - .now }

  var hasPassed: Bool { timeLeft <= .zero }

  /// The failure of what has not ended at the deadline.
  var failure: ServiceFailure { .timedOut(total) }

  /// Returns the time that is left. Throws `.timedOut` if there is none.
  func remaining() throws(ServiceFailure) -> Duration {
    let timeLeft = timeLeft
    if timeLeft <= .zero { throw failure }
    return timeLeft
  }

  /// Returns the time that is left in milliseconds, as GLib takes it: at least 1, because 0 would be no time limit or a
  /// default one. Throws `.timedOut` if there is none.
  func remainingMilliseconds() throws(ServiceFailure) -> Int32 {
    Int32(min(max(1, try remaining() / .milliseconds(1)), Double(Int32.max)))
  }

  /// Runs `body`, whose time does not count.
  func paused<R>(_ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    let start = ContinuousClock.now
    defer { end.withLock { $0 += .now - start } }
    return try body()
  }
}
#endif
