#if Keyring
internal import CLibsecret

/// A private connection to a message bus.
///
/// Never the shared one that GLib keeps for a process: that one ends the process when the bus goes away,
/// and it starts a bus where there is none. GDBus reads on a thread of its own, so that calls may be made
/// from any thread and need no main loop.
final class BusConnection: @unchecked Sendable {  // GDBusConnection locks for itself
  let raw: OpaquePointer

  /// Connects and says hello, all within `seconds`.
  init(address: String, seconds: Double) throws(ServiceFailure) {
    Workers.started
    let deadline = Cancellation(after: seconds)
    let flags = GDBusConnectionFlags(
      rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
        | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue
    )
    var error: UnsafeMutablePointer<GError>?
    guard
      let raw = g_dbus_connection_new_for_address_sync(address, flags, nil, deadline.raw, &error)
    else { throw ServiceFailure(consuming: error, seconds: seconds) }
    self.raw = raw
    g_dbus_connection_set_exit_on_close(raw, 0)
  }

  deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

  var isClosed: Bool { g_dbus_connection_is_closed(raw) != 0 }

  /// Whether GDBus can connect to `address`.
  static func supports(_ address: String) -> Bool { g_dbus_is_supported_address(address, nil) != 0 }

  /// A D-Bus address for the socket at `path`.
  static func address(ofSocket path: String) -> String {
    guard let escaped = g_dbus_address_escape_value(path) else { return "" }
    defer { g_free(escaped) }
    return "unix:path=" + String(cString: escaped)
  }

  /// Makes a call and waits for its answer for at most `seconds`. Never starts a service.
  func call(
    _ destination: String,
    path: String,
    _ interface: String,
    _ method: String,
    _ arguments: [Variant] = [],
    seconds: Double
  ) throws(ServiceFailure) -> Variant {
    let parameters = Variant.tuple(arguments)
    var error: UnsafeMutablePointer<GError>?
    let milliseconds = gint(min(max(1, seconds * 1000), Double(gint.max)))
    let answer = withExtendedLifetime(parameters) {
      g_dbus_connection_call_sync(
        raw,
        destination,
        path,
        interface,
        method,
        parameters.raw,
        nil,
        G_DBUS_CALL_FLAGS_NO_AUTO_START,
        milliseconds,
        nil,
        &error
      )
    }
    guard let answer else { throw ServiceFailure(consuming: error, seconds: seconds) }
    return Variant(owning: answer)
  }

  /// A call to the bus itself.
  func callBus(
    _ method: String,
    _ arguments: [Variant] = [],
    seconds: Double
  ) throws(ServiceFailure) -> Variant {
    try call(
      "org.freedesktop.DBus",
      path: "/org/freedesktop/DBus",
      "org.freedesktop.DBus",
      method,
      arguments,
      seconds: seconds
    )
  }
}
#endif
