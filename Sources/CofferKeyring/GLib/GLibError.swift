#if Keyring
internal import CLibsecret

extension ServiceFailure {
  /// Takes over and frees `error`, which a call left behind.
  init(consuming error: UnsafeMutablePointer<GError>?, seconds: Double) {
    guard let error else {
      self = .failed("GLib gave no reason")
      return
    }
    defer { g_error_free(error) }
    if let name = g_dbus_error_get_remote_error(error) {
      defer { g_free(name) }
      self = Self.remote(named: String(cString: name))
      return
    }
    let isIO = error.pointee.domain == g_io_error_quark()
    let code = UInt32(bitPattern: error.pointee.code)
    if isIO && (code == G_IO_ERROR_TIMED_OUT.rawValue || code == G_IO_ERROR_CANCELLED.rawValue) {
      self = .timedOut(seconds)
    } else if isIO && (code == G_IO_ERROR_CLOSED.rawValue || code == G_IO_ERROR_BROKEN_PIPE.rawValue) {
      self = .lost("the connection to the session bus was closed")
    } else {
      self = .failed(error.pointee.message.map { String(cString: $0) } ?? "GLib gave no reason")
    }
  }

  private static func remote(named name: String) -> ServiceFailure {
    switch name {
    case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected":
      // From the bus itself: whoever was asked has left it.
      .lost("the Secret Service stopped during the call")
    case "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.ServiceUnknown",
      "org.freedesktop.Secret.Error.NoSession":
      .lost("the Secret Service is not running any more")
    default: .remote(name)
    }
  }
}
#endif
