#if Keyring
internal import CLibsecret

/// A private connection to a message bus.
///
/// GLib's shared connection is never used: it ends the process when the bus goes away, and it starts a bus if
/// none runs. GDBus reads on its own thread, so calls can be made from any thread and need no main loop.
final class BusConnection: @unchecked Sendable {  // a GDBusConnection has a lock of its own
  let raw: OpaquePointer

  /// Connects and sends `Hello`, all within `timeout`. A ``CloseSubscription`` needs the context that it wakes, which no
  /// thread may have as its current one meanwhile.
  init(address: String, timeout: Duration, closingOn context: EventContext? = nil) throws(ServiceFailure) {
    let flags = GDBusConnectionFlags(
      rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
        | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue
    )
    let call = CancellableCall { cancellable throws(ServiceFailure) in
      var error: UnsafeMutablePointer<GError>?
      func connect() -> OpaquePointer? {
        g_dbus_connection_new_for_address_sync(address, flags, nil, cancellable, &error)
      }
      // The end of the connection is reported to the context that is current when it is made.
      let raw = if let context { context.asCurrent(connect) } else { connect() }
      guard let raw else {
        throw ServiceFailure(consuming: error, timeout: timeout)
      }
      return raw
    }
    raw = try call.result(within: timeout)
    g_dbus_connection_set_exit_on_close(raw, 0)
  }

  deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

  var isClosed: Bool { g_dbus_connection_is_closed(raw) != 0 }

  /// Whether GDBus can connect to `address`.
  static func supports(_ address: String) -> Bool { g_dbus_is_supported_address(address, nil) != 0 }

  /// Returns the D-Bus address of the socket at `path`.
  static func address(ofSocket path: String) -> String {
    guard let escaped = g_dbus_address_escape_value(path) else { return "" }
    defer { g_free(escaped) }
    return "unix:path=" + String(cString: escaped)
  }

  /// Delivers what has arrived for `context`, whose subscriptions were released. GLib keeps a signal that nobody
  /// receives, and with it the connection and the context.
  func deliverLast(on context: EventContext) {
    if !isClosed {
      // The bus handles messages in order: no signal of the subscriptions follows this answer.
      do throws(ServiceFailure) { _ = try callBus("GetId", timeout: .seconds(1)) } catch {}
    }
    context.deliverPending()
  }

  /// Makes a call and waits for the answer for at most `timeout`. Never starts a service.
  func call(
    _ destination: String,
    path: String,
    _ interface: String,
    _ method: String,
    _ arguments: [Variant] = [],
    timeout: Duration
  ) throws(ServiceFailure) -> Variant {
    let parameters = Variant.tuple(arguments)
    var error: UnsafeMutablePointer<GError>?
    let answer = withExtendedLifetime(parameters) {
      g_dbus_connection_call_sync(
        raw, destination, path, interface, method, parameters.raw, nil, G_DBUS_CALL_FLAGS_NO_AUTO_START,
        Self.milliseconds(timeout), nil, &error)
    }
    guard let answer else { throw ServiceFailure(consuming: error, timeout: timeout) }
    return Variant(owning: answer)
  }

  /// Makes the same call, and sends `descriptor` with it, which an argument ``Variant/handle(_:)`` stands for.
  func call(
    _ destination: String, path: String, _ interface: String, _ method: String, _ arguments: [Variant],
    descriptor: Int32, timeout: Duration
  ) throws(ServiceFailure) -> Variant {
    let parameters = Variant.tuple(arguments)
    var error: UnsafeMutablePointer<GError>?
    let descriptors = g_unix_fd_list_new()
    defer { g_object_unref(descriptors) }
    // The list gets a copy of the descriptor, which it closes.
    guard g_unix_fd_list_append(descriptors, descriptor, &error) >= 0 else {
      throw ServiceFailure(consuming: error, timeout: timeout)
    }
    let answer = withExtendedLifetime(parameters) {
      g_dbus_connection_call_with_unix_fd_list_sync(
        raw, destination, path, interface, method, parameters.raw, nil, G_DBUS_CALL_FLAGS_NO_AUTO_START,
        Self.milliseconds(timeout), descriptors, nil, nil, &error)
    }
    guard let answer else { throw ServiceFailure(consuming: error, timeout: timeout) }
    return Variant(owning: answer)
  }

  /// The name by which the bus knows this connection, such as `:1.7`.
  var uniqueName: String { g_dbus_connection_get_unique_name(raw).map { String(cString: $0) } ?? "" }

  /// Returns `timeout` as GDBus takes it. Less than one millisecond would be no timeout, or a default one.
  static func milliseconds(_ timeout: Duration) -> gint {
    gint(min(max(1, timeout / .milliseconds(1)), Double(gint.max)))
  }

  /// The name and the object of the bus itself. The interface is called like the name.
  static let (busName, busPath) = ("org.freedesktop.DBus", "/org/freedesktop/DBus")

  /// Calls the bus itself.
  func callBus(
    _ method: String,
    _ arguments: [Variant] = [],
    timeout: Duration
  ) throws(ServiceFailure) -> Variant {
    try call(Self.busName, path: Self.busPath, Self.busName, method, arguments, timeout: timeout)
  }
}
#endif
