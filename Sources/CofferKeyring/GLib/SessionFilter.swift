#if Keyring
internal import CLibsecret
internal import Synchronization

/// Checks the answers to `OpenSession` on one connection before libsecret reads them, because libsecret does not check
/// their type: an encrypted session was asked for, and the answer may have no key.
///
/// An answer of a wrong type is replaced with the error ``malformedAnswer``. GDBus calls the filter on its own thread.
final class SessionFilter: Sendable {
  /// The name and the text of the D-Bus error that stands for an answer of a wrong type.
  static let malformedAnswer = "coffer.MalformedAnswer"
  /// The longest public key in bytes: 1024 bits, the group of the protocol's only encryption, and the zero byte that
  /// KWallet puts before a number whose first bit is set.
  private static let maximumKeyLength = 129

  /// The calls without an answer: their serial numbers, and whether they ask for encryption.
  private let pending = Mutex<[UInt32: Bool]>([:])

  /// Filters the messages of `connection`. Returns the number for `g_dbus_connection_remove_filter`, which releases the
  /// filter at once: a connection that is released leaves that to the main loop of the program, if there is one.
  static func install(on connection: OpaquePointer) -> guint {
    g_dbus_connection_add_filter(
      connection,
      { _, message, isIncoming, filter in
        guard let message, let filter else { return message }
        let this = Unmanaged<SessionFilter>.fromOpaque(filter).takeUnretainedValue()
        if isIncoming == 0 {
          this.note(call: message)
        } else if this.isMalformed(answer: message) {
          return SessionFilter.error(insteadOf: message)
        }
        return message
      },
      Unmanaged.passRetained(SessionFilter()).toOpaque(),
      { filter in
        if let filter { Unmanaged<SessionFilter>.fromOpaque(filter).release() }
      })
  }

  private func note(call: OpaquePointer) {
    guard g_dbus_message_get_message_type(call) == G_DBUS_MESSAGE_TYPE_METHOD_CALL,
      let member = g_dbus_message_get_member(call), String(cString: member) == "OpenSession",
      let body = g_dbus_message_get_body(call)
    else { return }
    let algorithm = Variant(sinking: body)[0]?.string
    pending.withLock { $0[g_dbus_message_get_serial(call)] = algorithm != "plain" }
  }

  private func isMalformed(answer: OpaquePointer) -> Bool {
    let type = g_dbus_message_get_message_type(answer)
    guard type == G_DBUS_MESSAGE_TYPE_METHOD_RETURN || type == G_DBUS_MESSAGE_TYPE_ERROR,
      let isEncrypted = pending.withLock({ $0.removeValue(forKey: g_dbus_message_get_reply_serial(answer)) }),
      type == G_DBUS_MESSAGE_TYPE_METHOD_RETURN
    else { return false }
    guard let body = g_dbus_message_get_body(answer) else { return true }
    return !Self.isSession(Variant(sinking: body), isEncrypted: isEncrypted)
  }

  /// Whether `answer` is an answer to `OpenSession`: the service's public key or nothing, and the session's path.
  static func isSession(_ answer: Variant, isEncrypted: Bool) -> Bool {
    guard answer.signature == "(vo)", let output = answer[0]?.unboxed, let path = answer[1]?.path,
      path != "/"
    else { return false }
    if !isEncrypted { return output.signature == "s" }
    return output.signature == "ay" && (1...maximumKeyLength).contains(output.count)
  }

  /// Releases `message`, and returns an error in its place.
  private static func error(insteadOf message: OpaquePointer) -> OpaquePointer? {
    defer { g_object_unref(UnsafeMutableRawPointer(message)) }
    guard let error = g_dbus_message_new() else { return nil }
    g_dbus_message_set_message_type(error, G_DBUS_MESSAGE_TYPE_ERROR)
    g_dbus_message_set_error_name(error, malformedAnswer)
    g_dbus_message_set_reply_serial(error, g_dbus_message_get_reply_serial(message))
    g_dbus_message_set_serial(error, g_dbus_message_get_serial(message))
    g_dbus_message_set_sender(error, g_dbus_message_get_sender(message))
    // libsecret passes only the text on.
    let body = Variant.tuple([.string(malformedAnswer)])
    withExtendedLifetime(body) { g_dbus_message_set_body(error, body.raw) }
    return error
  }
}
#endif
