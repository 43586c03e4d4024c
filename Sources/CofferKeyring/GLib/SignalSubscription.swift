#if Keyring
internal import CLibsecret

/// A signal as it came.
struct BusSignal {
  let path: String
  let interface: String
  let member: String
  let arguments: Variant
}

/// Delivers matching signals to a handler until it is released.
///
/// Made inside ``EventContext/asCurrent(_:)``: the handler is called by whoever iterates that context, and
/// by nobody once this is released on the iterating thread.
final class SignalSubscription {
  private let connection: BusConnection
  private let handler: Handler
  private let key: guint

  private final class Handler {
    let body: (BusSignal) -> Void
    init(_ body: @escaping (BusSignal) -> Void) { self.body = body }
  }

  /// `nil` matches anything.
  init(
    _ connection: BusConnection,
    sender: String?,
    interface: String?,
    member: String? = nil,
    path: String? = nil,
    firstArgument: String? = nil,
    handler body: @escaping (BusSignal) -> Void
  ) {
    self.connection = connection
    handler = Handler(body)
    // The context keeps no reference to the handler: nothing is delivered after `deinit`, which runs on
    // the thread that iterates, and this object keeps it alive until then.
    key = g_dbus_connection_signal_subscribe(
      connection.raw,
      sender,
      interface,
      member,
      path,
      firstArgument,
      G_DBUS_SIGNAL_FLAGS_NONE,
      { _, _, path, interface, member, arguments, handler in
        guard let path, let interface, let member, let arguments, let handler else { return }
        Unmanaged<Handler>.fromOpaque(handler).takeUnretainedValue().body(
          BusSignal(
            path: String(cString: path),
            interface: String(cString: interface),
            member: String(cString: member),
            arguments: Variant(sinking: arguments)
          )
        )
      },
      Unmanaged.passUnretained(handler).toOpaque(),
      nil
    )
  }

  deinit { g_dbus_connection_signal_unsubscribe(connection.raw, key) }
}

/// Tells that a connection was closed, on the context in which the connection was made.
final class ClosedNotice {
  private let connection: BusConnection
  private let key: gulong

  init(_ connection: BusConnection, wake context: EventContext) {
    self.connection = connection
    typealias Callback =
      @convention(c) (UnsafeMutableRawPointer?, gboolean, UnsafePointer<GError>?, UnsafeMutableRawPointer?)
      -> Void
    let callback: Callback = { _, _, _, context in
      guard let context else { return }
      Unmanaged<EventContext>.fromOpaque(context).takeUnretainedValue().wake()
    }
    key = g_signal_connect_data(
      UnsafeMutableRawPointer(connection.raw),
      "closed",
      unsafeBitCast(callback, to: GCallback.self),
      Unmanaged.passRetained(context).toOpaque(),
      { context, _ in
        guard let context else { return }
        Unmanaged<EventContext>.fromOpaque(context).release()
      },
      GConnectFlags(rawValue: 0)
    )
  }

  deinit { g_signal_handler_disconnect(UnsafeMutableRawPointer(connection.raw), key) }
}
#endif
