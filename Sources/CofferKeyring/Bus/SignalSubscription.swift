#if Keyring
internal import CLibsecret

/// Delivers matching signals to a closure until this object is released.
///
/// Create and release it on the thread that iterates the current ``EventContext``. The closure runs on that thread, and
/// never after the release.
final class SignalSubscription {
  /// Receives the member and the arguments of a signal.
  typealias Body = (String, Variant) -> Void

  private let connection: BusConnection
  private let body: Body
  private var key: guint = 0

  /// `nil` matches anything.
  init(
    _ connection: BusConnection, sender: String, interface: String, member: String? = nil,
    path: String? = nil, firstArgument: String? = nil, _ body: @escaping Body
  ) {
    self.connection = connection
    self.body = body
    // GDBus gets an unretained reference. It delivers nothing after `deinit`, which runs on the iterating thread.
    key = g_dbus_connection_signal_subscribe(
      connection.raw, sender, interface, member, path, firstArgument, G_DBUS_SIGNAL_FLAGS_NONE,
      { _, _, _, _, member, arguments, subscription in
        guard let member, let arguments, let subscription else { return }
        Unmanaged<SignalSubscription>.fromOpaque(subscription).takeUnretainedValue()
          .body(String(cString: member), Variant(sinking: arguments))
      },
      Unmanaged.passUnretained(self).toOpaque(), nil)
  }

  /// Subscribes to the signals that the bus sends when `name` gets an owner, loses it, or gets another one.
  convenience init(ownersOf name: String, on connection: BusConnection, _ body: @escaping Body) {
    let bus = BusConnection.busName
    self.init(connection, sender: bus, interface: bus, member: "NameOwnerChanged", firstArgument: name, body)
  }

  deinit { g_dbus_connection_signal_unsubscribe(connection.raw, key) }
}

/// Wakes an ``EventContext`` when a connection is closed, until this object is released.
final class CloseSubscription {
  private let connection: BusConnection
  private let key: gulong

  init(_ connection: BusConnection, waking context: EventContext) {
    self.connection = connection
    typealias Callback =
      @convention(c) (UnsafeMutableRawPointer?, gboolean, UnsafePointer<GError>?, UnsafeMutableRawPointer?)
      -> Void
    let callback: Callback = { _, _, _, context in
      guard let context else { return }
      Unmanaged<EventContext>.fromOpaque(context).takeUnretainedValue().wake()
    }
    key = g_signal_connect_data(
      UnsafeMutableRawPointer(connection.raw), "closed", unsafeBitCast(callback, to: GCallback.self),
      Unmanaged.passRetained(context).toOpaque(),
      { context, _ in
        guard let context else { return }
        Unmanaged<EventContext>.fromOpaque(context).release()
      },
      GConnectFlags(rawValue: 0))
  }

  deinit { g_signal_handler_disconnect(UnsafeMutableRawPointer(connection.raw), key) }
}
#endif
