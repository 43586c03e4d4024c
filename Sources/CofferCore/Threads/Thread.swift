internal import CofferLibc

/// Runs `body` on a new thread, which receives no signals: the program's handlers run on the program's threads. Returns
/// 0, or the `errno` of the system call that failed.
package func startThread(_ body: @escaping @Sendable () -> Void) -> Int32 {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let argument = Unmanaged.passRetained(Start(body))
  var all = sigset_t()
  var previous = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, &previous)
  let result = pthread_create(
    &thread, nil,
    { argument in
      guard let argument else { return nil }
      Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
      return nil
    }, argument.toOpaque())
  pthread_sigmask(SIG_SETMASK, &previous, nil)
  if result == 0 { pthread_detach(thread) } else { argument.release() }
  return result
}

/// Blocks the thread for at least `duration`, even if signals arrive.
package func threadSleep(_ duration: Duration) {
  let (seconds, attoseconds) = duration.components
  var left = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  var unslept = timespec()
  while nanosleep(&left, &unslept) == -1 && errno == EINTR { left = unslept }
}
