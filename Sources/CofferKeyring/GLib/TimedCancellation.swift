#if Keyring
internal import CLibsecret
internal import Dispatch

/// Cancels GLib calls that have no timeout of their own.
///
/// The timer runs on a Dispatch queue, and so needs no main loop.
struct TimedCancellation: ~Copyable {
  let raw: UnsafeMutablePointer<GCancellable>
  private let timer: any DispatchSourceTimer

  init(after timeout: Duration) {
    raw = g_cancellable_new()
    let target = Target(raw: raw)
    timer = DispatchSource.makeTimerSource(queue: .global())
    timer.setEventHandler { g_cancellable_cancel(target.raw) }
    timer.schedule(deadline: .now() + timeout / .seconds(1))
    timer.activate()
  }

  deinit {
    timer.cancel()
    g_object_unref(raw)
  }

  /// The timer's own reference, because the timer may fire while `deinit` runs.
  private final class Target: @unchecked Sendable {  // a GCancellable may be used from several threads
    let raw: UnsafeMutablePointer<GCancellable>
    init(raw: UnsafeMutablePointer<GCancellable>) {
      self.raw = raw
      g_object_ref(raw)
    }
    deinit { g_object_unref(raw) }
  }
}
#endif
