internal import CLinux
internal import Glibc

/// A lock between threads whose waits end.
///
/// Unlike `Mutex` it gives up at a deadline, and it notices a thread that already holds it instead of
/// stopping that thread for good.
package final class DeadlineLock: @unchecked Sendable {  // a pthread mutex is made for this
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

  /// Runs `body` with the lock held. Throws `.conflict` where this thread holds it already, and
  /// `.timedOut` where another still does after `seconds`.
  package func withLock<R: ~Copyable>(
    seconds: Double,
    _ body: () throws(SecretError) -> R
  ) throws(SecretError) -> R {
    var result = pthread_mutex_trylock(mutex)
    if result == EBUSY {
      var deadline = timespec()
      clock_gettime(CLOCK_MONOTONIC, &deadline)
      let nanoseconds = deadline.tv_nsec + Int(seconds.truncatingRemainder(dividingBy: 1) * 1e9)
      deadline.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
      deadline.tv_nsec = nanoseconds % 1_000_000_000
      result = coffer_mutex_clocklock(mutex, CLOCK_MONOTONIC, &deadline)
    }
    switch result {
    case 0: break
    case EDEADLK:
      throw SecretError(
        .conflict,
        "The store was used inside its own transaction.",
        advice: "Use the transaction that the closure was given."
      )
    default:
      throw SecretError(
        .timedOut,
        "Another thread kept the store busy for \(seconds) seconds.",
        advice: "Try again."
      )
    }
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }
}
