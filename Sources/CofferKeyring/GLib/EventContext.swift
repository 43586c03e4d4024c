#if Keyring
internal import CLibsecret

/// A `GMainContext` of the bridge's own: signals come in here, and never on the default context, which
/// belongs to the program (GTK).
///
/// Iterated by one thread. ``wake()`` may be called from any.
final class EventContext: @unchecked Sendable {  // a GMainContext is made for several threads
  private let raw: OpaquePointer

  init() { raw = g_main_context_new() }
  deinit { g_main_context_unref(raw) }

  /// Runs `body` with this context as the thread's own: what is subscribed inside is delivered here.
  func asCurrent<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    g_main_context_push_thread_default(raw)
    defer { g_main_context_pop_thread_default(raw) }
    return try body()
  }

  /// Runs `body` with a new context, which is the thread's own meanwhile.
  static func scoped<R, E: Error>(_ body: (EventContext) throws(E) -> R) throws(E) -> R {
    let context = EventContext()
    return try context.asCurrent { () throws(E) in try body(context) }
  }

  /// Delivers what has come, after waiting for it for at most so many seconds; `nil`: until ``wake()``.
  func iterate(waitingAtMost seconds: Double?) {
    guard let seconds else {
      g_main_context_iteration(raw, 1)
      return
    }
    let source = g_timeout_source_new(guint(max(0, seconds) * 1000))
    g_source_set_callback(source, { _ in 0 }, nil, nil)
    g_source_attach(source, raw)
    g_main_context_iteration(raw, 1)
    g_source_destroy(source)
    g_source_unref(source)
  }

  func wake() { g_main_context_wakeup(raw) }
}
#endif
