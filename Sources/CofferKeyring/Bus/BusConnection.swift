#if Keyring
internal import CLibsecret
internal import CofferCore

/// A private connection to a message bus.
///
/// GLib's shared connection is never used: it ends the process when the bus goes away, and it starts a bus if none
/// runs. GDBus reads on its own thread, so calls can be made from any thread and need no main loop.
final class BusConnection: @unchecked Sendable {  // a GDBusConnection has a lock of its own
  let raw: OpaquePointer

  /// Connects and sends `Hello`. `context` is the one that a ``CloseSubscription`` wakes. Until this returns, it must
  /// not be the current context of any thread.
  static func to(
    _ address: String, by deadline: Deadline, closingOn context: EventContext? = nil
  ) throws(ServiceFailure) -> BusConnection {
    let flags = GDBusConnectionFlags(
      rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
        | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue
    )
    let call = CancellableCall { cancellable throws(ServiceFailure) in
      var error: UnsafeMutablePointer<GError>?
      func connect() -> OpaquePointer? {
        g_dbus_connection_new_for_address_sync(address, flags, nil, cancellable, &error)
      }
      // The end of a connection is reported to the context that is current when the connection is made.
      let raw = if let context { context.asCurrent(connect) } else { connect() }
      guard let raw else { throw ServiceFailure(consuming: error, deadline) }
      g_dbus_connection_set_exit_on_close(raw, 0)
      return BusConnection(owning: raw)
    }
    do throws(ServiceFailure) { return try call.result(by: deadline) } catch .timedOut(let timeout, _, _) {
      throw .error(
        .timedOut, "The session bus did not answer within \(timeout.rounded).",
        advice: "Try again, or check DBUS_SESSION_BUS_ADDRESS.")
    }
  }

  private init(owning raw: OpaquePointer) { self.raw = raw }

  deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

  var isClosed: Bool { g_dbus_connection_is_closed(raw) != 0 }

  /// Returns the D-Bus address of the socket at `path`.
  static func address(ofSocket path: String) -> String {
    guard let escaped = g_dbus_address_escape_value(path) else { return "" }
    defer { g_free(escaped) }
    return "unix:path=" + String(cString: escaped)
  }

  /// The name of this connection on the bus, such as `:1.7`.
  var uniqueName: String { g_dbus_connection_get_unique_name(raw).map { String(cString: $0) } ?? "" }

  /// Delivers the signals that still wait on `context` after their subscriptions were released. GLib keeps undelivered
  /// signals, and each of them keeps the connection and the context in memory.
  func deliverLast(on context: EventContext) {
    if !isClosed {
      // The bus handles messages in order: no signal for the subscriptions can follow this answer.
      do throws(ServiceFailure) { _ = try callBus("GetId", by: Deadline(after: .seconds(1))) } catch {}
    }
    context.deliverPending()
  }

  // MARK: Calls

  /// Makes a call and waits for the answer. Never starts a service. Sends `descriptor` with the call, if there is one:
  /// ``Variant/handle(_:)`` stands for it in the arguments.
  func call(
    _ destination: String, path: String, _ interface: String, _ method: String, _ arguments: [Variant] = [],
    descriptor: Int32? = nil, by deadline: Deadline
  ) throws(ServiceFailure) -> Variant {
    let parameters = Variant.tuple(arguments)
    var error: UnsafeMutablePointer<GError>?
    var descriptors: UnsafeMutablePointer<GUnixFDList>?
    defer { if let descriptors { g_object_unref(descriptors) } }
    if let descriptor {
      descriptors = g_unix_fd_list_new()
      // The list gets a copy of the descriptor, which it closes.
      guard g_unix_fd_list_append(descriptors, descriptor, &error) >= 0 else {
        throw ServiceFailure(consuming: error, deadline)
      }
    }
    let timeout = try deadline.remainingMilliseconds()
    let answer = withExtendedLifetime(parameters) {
      g_dbus_connection_call_with_unix_fd_list_sync(
        raw, destination, path, interface, method, parameters.raw, nil, G_DBUS_CALL_FLAGS_NO_AUTO_START,
        timeout, descriptors, nil, nil, &error)
    }
    guard let answer else { throw ServiceFailure(consuming: error, deadline) }
    return Variant(owning: answer)
  }

  /// The name and the object of the bus itself. Its interface has the same name.
  static let (busName, busPath) = ("org.freedesktop.DBus", "/org/freedesktop/DBus")

  func callBus(_ method: String, _ arguments: [Variant] = [], by deadline: Deadline) throws(ServiceFailure) -> Variant {
    try call(Self.busName, path: Self.busPath, Self.busName, method, arguments, by: deadline)
  }

  func canStart(_ name: String, by deadline: Deadline) throws(ServiceFailure) -> Bool {
    try callBus("ListActivatableNames", by: deadline)[0]?.strings?.contains(name) ?? false
  }

  /// Starts the service with the well-known name `name`, unless it runs.
  func start(_ name: String, by deadline: Deadline) throws(ServiceFailure) {
    _ = try callBus("StartServiceByName", [.string(name), .unsigned32(0)], by: deadline)
  }

  /// Who owns a bus name after a request. Source: D-Bus Specification 0.43, org.freedesktop.DBus.RequestName.
  enum NameOwner: UInt32 { case thisRequest = 1, anotherConnection = 3, anEarlierRequest = 4 }

  /// Makes this connection the owner of the bus name `name`, unless another connection is.
  func requestName(_ name: String, by deadline: Deadline) throws(ServiceFailure) -> NameOwner {
    let doNotQueue = Variant.unsigned32(4)
    let answer = try callBus("RequestName", [.string(name), doNotQueue], by: deadline)
    return try answer.element(0) { $0.unsigned32.flatMap(NameOwner.init) }
  }

  /// Releases the bus name. A failure is ignored: the bus has then ended, and its names with it.
  func releaseName(_ name: String, by deadline: Deadline) {
    do throws(ServiceFailure) { _ = try callBus("ReleaseName", [.string(name)], by: deadline) } catch {}
  }
}
#endif
