internal import CLinux
internal import CofferLibc
internal import Synchronization

/// A lock between threads with a timeout.
///
/// Unlike `Mutex`, it throws when the timeout has passed, and when the calling thread holds the lock already, which
/// would be a deadlock. Thread-safe.
package final class DeadlineLock: @unchecked Sendable {  // a pthread mutex may be used by any thread
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  /// The thread that holds the lock, or 0. Only the holder writes it, so a thread that reads its own id holds the lock.
  private let owner = Atomic<UInt>(0)

  package init() { pthread_mutex_init(mutex, nil) }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Runs `body` with the lock held. Signals and the cancellation of a task do not end the wait.
  ///
  /// Throws what `body` throws, `.conflict` if the calling thread holds the lock already, and `.timedOut` if another
  /// thread still holds it after `timeout`.
  package func withLock<R: ~Copyable>(timeout: Duration, _ body: () throws(SecretError) -> R) throws(SecretError) -> R {
    var result = pthread_mutex_trylock(mutex)
    if result != 0 {
      try requireNotHeld()
      var deadline = timespec(after: timeout)
      result = coffer_mutex_clocklock(mutex, CLOCK_MONOTONIC, &deadline)
    }
    guard result == 0 else {
      throw SecretError(.timedOut, "Another thread kept the store busy for \(timeout.rounded).", advice: "Try again.")
    }
    return try holding(body)
  }

  /// Runs `body` with the lock held. Returns `nil` if another thread holds the lock. Throws what `body` throws, and
  /// `.conflict` if the calling thread holds the lock already.
  package func withLockIfFree<R: ~Copyable>(_ body: () throws(SecretError) -> R) throws(SecretError) -> R? {
    guard pthread_mutex_trylock(mutex) == 0 else {
      try requireNotHeld()
      return nil
    }
    return try holding(body)
  }

  /// Throws `.conflict` if the calling thread holds the lock.
  package func requireNotHeld() throws(SecretError) {
    guard owner.load(ordering: .relaxed) == pthread_self() else { return }
    throw SecretError(
      .conflict, "The store was used inside its own transaction.",
      advice: "Use the transaction that the closure receives.")
  }

  private func holding<R: ~Copyable>(_ body: () throws(SecretError) -> R) throws(SecretError) -> R {
    owner.store(pthread_self(), ordering: .relaxed)
    defer {
      owner.store(0, ordering: .relaxed)
      pthread_mutex_unlock(mutex)
    }
    return try body()
  }
}
