#if Keyring
internal import CLibsecret

/// A `GMainContext` that only this module uses. Signals never arrive on the default context, which belongs to the
/// program, for example to GTK.
///
/// One thread iterates it. Any thread may call ``wake()``.
final class EventContext: @unchecked Sendable {  // a GMainContext may be used from several threads
  private let raw: OpaquePointer

  init() { raw = g_main_context_new() }
  deinit { g_main_context_unref(raw) }

  /// Runs `body` with this context as the thread's default: signals that `body` subscribes to arrive here.
  func asCurrent<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    g_main_context_push_thread_default(raw)
    defer { g_main_context_pop_thread_default(raw) }
    return try body()
  }

  /// Waits for events for at most `timeout`, or until ``wake()`` if it is `nil`, and delivers them.
  func iterate(timeout: Duration?) {
    guard let timeout else {
      g_main_context_iteration(raw, 1)
      return
    }
    let source = g_timeout_source_new(guint(max(0, timeout / .milliseconds(1))))
    g_source_set_callback(source, { _ in 0 }, nil, nil)
    g_source_attach(source, raw)
    g_main_context_iteration(raw, 1)
    g_source_destroy(source)
    g_source_unref(source)
  }

  /// Delivers the events that have arrived, without waiting for more.
  func deliverPending() {
    while g_main_context_iteration(raw, 0) != 0 {}
  }

  func wake() { g_main_context_wakeup(raw) }
}
#endif
