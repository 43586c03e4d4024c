internal import CLinux
internal import Glibc

/// A lock between threads with a timeout.
///
/// Unlike `Mutex`, it throws when the timeout has passed, and when the calling thread holds the lock already,
/// which would be a deadlock. Thread-safe.
package final class DeadlineLock: @unchecked Sendable {  // a pthread mutex may be used by any thread
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  package init() {
    mutex = .allocate(capacity: 1)
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ERRORCHECK))
    pthread_mutex_init(mutex, &attributes)
    pthread_mutexattr_destroy(&attributes)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Runs `body` with the lock held. Throws `.conflict` if the calling thread holds the lock already, and
  /// `.timedOut` if another thread still holds it after `timeout`. A waiting thread is not interrupted by
  /// signals or by the cancellation of a task.
  package func withLock<R: ~Copyable>(
    timeout: Duration,
    _ body: () throws(SecretError) -> R
  ) throws(SecretError) -> R {
    var result = pthread_mutex_trylock(mutex)
    if result == EBUSY {
      var deadline = timespec(after: timeout)
      result = coffer_mutex_clocklock(mutex, CLOCK_MONOTONIC, &deadline)
    }
    switch result {
    case 0: break
    case EDEADLK: throw Self.reentrance
    default:
      throw SecretError(
        .timedOut,
        "Another thread kept the store busy for \(timeout).",
        advice: "Try again."
      )
    }
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Runs `body` with the lock held. Returns `nil` if another thread holds it. Throws `.conflict` if the calling
  /// thread does.
  package func withLockIfFree<R: ~Copyable>(_ body: () throws(SecretError) -> R) throws(SecretError) -> R? {
    if pthread_mutex_trylock(mutex) != 0 {
      // Only this call tells the two cases apart. It does not wait, because its deadline has passed.
      var past = timespec()
      switch coffer_mutex_clocklock(mutex, CLOCK_MONOTONIC, &past) {
      case 0: break
      case EDEADLK: throw Self.reentrance
      default: return nil
      }
    }
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  private static var reentrance: SecretError {
    SecretError(
      .conflict,
      "The store was used inside its own transaction.",
      advice: "Use the transaction that the closure receives."
    )
  }
}
