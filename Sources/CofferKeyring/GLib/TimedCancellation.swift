#if Keyring
internal import CLibsecret
internal import CofferCore
internal import Glibc

/// Cancels GLib calls that have no timeout of their own.
///
/// The timer is a thread, and so needs no main loop. A timer of Dispatch takes three threads.
struct TimedCancellation: ~Copyable {
  var raw: UnsafeMutablePointer<GCancellable> { timer.raw }
  private let timer: Timer

  init(after timeout: Duration) {
    timer = Timer()
    timer.start(milliseconds: BusConnection.milliseconds(timeout))
  }

  deinit { timer.end() }

  /// Lives until its thread has ended.
  private final class Timer: @unchecked Sendable {  // a GCancellable may be used from several threads
    let raw: UnsafeMutablePointer<GCancellable> = g_cancellable_new()
    /// Connected sockets, of which the second one is closed when the calls have ended.
    private var ends: [Int32] = [-1, -1]

    /// Cancels at once if there can be no timer: no call may wait without a deadline.
    func start(milliseconds: Int32) {
      guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0,
        startThread({ self.run(milliseconds) }) == 0
      else {
        return g_cancellable_cancel(raw)
      }
    }

    private func run(_ milliseconds: Int32) {
      var request = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
      var result: Int32
      repeat { result = poll(&request, 1, milliseconds) } while result < 0 && errno == EINTR
      if result == 0 { g_cancellable_cancel(raw) }
    }

    func end() { if ends[1] >= 0 { close(ends[1]) } }

    deinit {
      if ends[0] >= 0 { close(ends[0]) }
      g_object_unref(raw)
    }
  }
}
#endif
