#if Keyring
internal import CLibsecret

extension ServiceFailure {
  /// Takes over and frees `error`, which a call until `deadline` set. Without one, the caller names the time in `.timedOut`.
  init(consuming error: UnsafeMutablePointer<GError>?, _ deadline: Deadline? = nil) {
    guard let error else {
      self = .failed("GLib reported no reason")
      return
    }
    defer { g_error_free(error) }
    // libsecret removes the name of a remote error. GLib knows only the standard names by the code.
    var name = g_dbus_error_get_remote_error(error)
    if name == nil, error.pointee.domain == g_dbus_error_quark() { name = g_dbus_error_encode_gerror(error) }
    defer { g_free(name) }
    g_dbus_error_strip_remote_error(error)
    let message = error.pointee.message.map { String(cString: $0) }
    if let name {
      self = Self.remote(named: String(cString: name), message)
      return
    }
    let code = GIOErrorEnum(rawValue: UInt32(bitPattern: error.pointee.code))
    switch error.pointee.domain == g_io_error_quark() ? code : nil {
    case G_IO_ERROR_DBUS_ERROR: self = .malformed
    case G_IO_ERROR_TIMED_OUT, G_IO_ERROR_CANCELLED: self = deadline?.failure ?? .timedOut(.zero)
    case G_IO_ERROR_CLOSED, G_IO_ERROR_BROKEN_PIPE: self = .busClosed
    default: self = .failed(message ?? "GLib reported no reason")
    }
  }

  static let busClosed = lost("the connection to the session bus was closed")

  private static func remote(named name: String, _ reason: String?) -> ServiceFailure {
    switch name {
    case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected":
      // The bus sends these if the service disconnects before it answers.
      .lost("the Secret Service stopped during the call")
    case "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.ServiceUnknown":
      .lost("the Secret Service is no longer running")
    case "org.freedesktop.Secret.Error.NoSession": .session(.remote(name))
    default: .remote(name, reason: reason)
    }
  }
}
#endif
