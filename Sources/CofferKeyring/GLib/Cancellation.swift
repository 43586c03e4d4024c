#if Keyring
internal import CLibsecret
internal import Dispatch

/// A deadline for GLib calls that have none: cancels them once `seconds` have passed.
///
/// The timer runs on a Dispatch queue, so that it needs no main loop.
struct Cancellation: ~Copyable {
  let raw: UnsafeMutablePointer<GCancellable>
  private let timer: any DispatchSourceTimer

  init(after seconds: Double) {
    raw = g_cancellable_new()
    let target = Target(raw: raw)
    timer = DispatchSource.makeTimerSource(queue: .global())
    timer.setEventHandler { g_cancellable_cancel(target.raw) }
    timer.schedule(deadline: .now() + seconds)
    timer.activate()
  }

  deinit {
    timer.cancel()
    g_object_unref(raw)
  }

  /// A reference of the timer's own, so that it may fire while the owner lets go.
  private final class Target: @unchecked Sendable {  // a GCancellable is made for several threads
    let raw: UnsafeMutablePointer<GCancellable>
    init(raw: UnsafeMutablePointer<GCancellable>) {
      self.raw = raw
      g_object_ref(raw)
    }
    deinit { g_object_unref(raw) }
  }
}
#endif
