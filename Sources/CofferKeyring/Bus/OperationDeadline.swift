#if Keyring
internal import Synchronization

/// The time that one method of the backend has for all of its calls.
///
/// The time in which a person answers a prompt does not count.
final class OperationDeadline: Sendable {
  /// The time in all, for messages.
  let total: Duration
  let start = ContinuousClock.now
  private let instant: Mutex<ContinuousClock.Instant>

  init(after total: Duration) {
    self.total = total
    instant = Mutex(.now + total)
  }

  /// The time that is left. Throws `.timedOut` if there is none.
  func remaining() throws(ServiceFailure) -> Duration {
    let remaining = instant.withLock { $0 } - .now
    if remaining <= .zero { throw .timedOut(total) }
    return remaining
  }

  /// Runs `body`, whose time does not count.
  func paused<R>(_ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    let start = ContinuousClock.Instant.now
    defer { instant.withLock { $0 += .now - start } }
    return try body()
  }
}
#endif
