#if Keyring
  internal import CLibsecret
  internal import Glibc

  /// A private connection to a message bus.
  ///
  /// Never the shared one that GLib keeps for a process: that one ends the process when the bus goes away,
  /// and it starts a bus where there is none. GDBus reads on a thread of its own, so that calls may be made
  /// from any thread and need no main loop.
  final class BusConnection: @unchecked Sendable {  // GDBusConnection locks for itself
    let raw: OpaquePointer

    /// Connects and says hello, all within `seconds`.
    init(address: String, seconds: Double) throws(ServiceFailure) {
      Self.threadStart
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

    /// Starts the thread that GDBus keeps for all connections of a process, with every signal held back in it.
    ///
    /// GDBus starts it with the first connection, and it holds back what the connecting thread does: nothing,
    /// mostly. A program's signals would then come there, where they end the process or are lost, although
    /// the program waits for them elsewhere. So the first connection is one to nowhere, which is made at once.
    private static let threadStart: Void = {
      var (all, previous) = (sigset_t(), sigset_t())
      sigfillset(&all)
      pthread_sigmask(SIG_SETMASK, &all, &previous)
      defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
      var ends: [Int32] = [-1, -1]
      guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
        return
      }
      defer { close(ends[1]) }
      guard let socket = g_socket_new_from_fd(ends[0], nil) else {
        close(ends[0])
        return
      }
      defer { g_object_unref(socket) }
      let stream = g_socket_connection_factory_create_connection(socket)
      defer { g_object_unref(stream) }
      stream?.withMemoryRebound(to: GIOStream.self, capacity: 1) { stream in
        let connection = g_dbus_connection_new_sync(stream, nil, G_DBUS_CONNECTION_FLAGS_NONE, nil, nil, nil)
        if let connection { g_object_unref(UnsafeMutableRawPointer(connection)) }
      }
    }()

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
