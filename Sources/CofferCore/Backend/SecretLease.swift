internal import Synchronization

/// A lock on one secret, held until it is released. Thread-safe.
public final class SecretLease: Sendable {
  private let onRelease: Mutex<(@Sendable () -> Void)?>

  /// Creates the lease of a backend. `onRelease` is called once.
  public init(onRelease: @escaping @Sendable () -> Void) { self.onRelease = Mutex(onRelease) }

  deinit { release() }

  /// Releases the lease. Calls after the first do nothing.
  public func release() { onRelease.withLock { $0.take() }?() }
}

extension SecretBackend {
  /// Runs `body` with the lease of a secret: only one thread of one process has it at a time. If several programs
  /// refresh one token, a lease lets one of them do it. Reading and changing the secret need no lease.
  ///
  /// `body` gets the backend through which to store. It cannot take the same lease again.
  ///
  /// Throws what `body` throws, `.timedOut` if another thread or process keeps the lease for longer than `timeout`, and
  /// what ``SecretBackend/tryLease(_:)`` throws: `.unsupported` for a backend without leases.
  // In `async` code, the compiler always chooses the other overload, because the wait here blocks the thread.
  @_disfavoredOverload
  public func withLease<R>(
    of identifier: SecretIdentifier, timeout: Duration = .seconds(30), _ body: (any SecretBackend) throws -> R
  ) throws -> R {
    var wait = LeaseWait(identifier, timeout: timeout)
    while true {
      if let lease = try tryLease(identifier) {
        defer { lease.release() }
        return try body(self)
      }
      threadSleep(try wait.nextPause())
    }
  }

  /// Runs `body` with the lease of a secret, as the method without `async` does. The wait blocks no thread.
  ///
  /// Throws what that method throws, and `CancellationError` if the task is cancelled during the wait.
  public func withLease<R>(
    of identifier: SecretIdentifier, timeout: Duration = .seconds(30),
    isolation: isolated (any Actor)? = #isolation, _ body: (any SecretBackend) async throws -> sending R
  ) async throws -> sending R {
    var wait = LeaseWait(identifier, timeout: timeout)
    while true {
      if let lease = try await perform({ backend throws(SecretError) in try backend.tryLease(identifier) }) {
        defer { lease.release() }
        return try await body(self)
      }
      try await Task.sleep(for: wait.nextPause())
    }
  }
}

/// The pauses between the attempts to take one lease, until a deadline.
private struct LeaseWait {
  private let identifier: SecretIdentifier
  private let timeout: Duration
  private let deadline: ContinuousClock.Instant
  private var pause = Duration.milliseconds(1)

  init(_ identifier: SecretIdentifier, timeout: Duration) {
    (self.identifier, self.timeout) = (identifier, timeout)
    deadline = .now + timeout
  }

  /// The time until the next attempt. Throws `.timedOut` after the deadline.
  mutating func nextPause() throws(SecretError) -> Duration {
    let left = deadline - .now
    guard left > .zero else {
      throw SecretError(
        .timedOut, "Another thread or process kept the lease of the secret for \(timeout).",
        advice: "Try again, or allow more time.", identifier: identifier)
    }
    // Longer pauses in a long wait: an engine is asked each time.
    defer { pause = min(pause * 2, max(.milliseconds(50), (timeout - left) / 8)) }
    return min(pause, left)
  }
}
