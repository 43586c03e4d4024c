#if Keyring
internal import CLibsecret

/// A message of D-Bus, released once.
final class Message {
  let raw: OpaquePointer

  /// Takes over a full reference.
  init(owning raw: OpaquePointer) { self.raw = raw }

  deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

  /// The answer with `body` to this call.
  func answer(_ body: Variant) -> Message {
    let answer = Message(owning: g_dbus_message_new_method_reply(raw))
    g_dbus_message_set_body(answer.raw, body.raw)
    return answer
  }

  /// The error of this name in answer to this call.
  func error(_ name: String) -> Message {
    Message(owning: g_dbus_message_new_method_error_literal(raw, name, name))
  }
}
#endif
