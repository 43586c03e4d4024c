#if Keyring
internal import CLibsecret
internal import CofferCore

/// A session with one process of the Secret Service, which encrypts the secrets in messages.
///
/// libsecret encrypts each secret with a key that it negotiates with the service. If the service supports no
/// encryption, libsecret sends secrets unencrypted; the bus is a local socket of the user.
///
/// The session is with one process, by its unique bus name. Another process that takes over the well-known name
/// therefore never gets a secret of this session.
final class SecretSession: @unchecked Sendable {  // `raw` is set once, and libsecret reads it from any thread
  let path: String
  private let raw: OpaquePointer

  /// The largest secret in a message that is decrypted, in bytes: 32 MiB. Other programs may store larger values than
  /// this module, and libsecret holds a value in locked memory several times.
  private static let maximumSealedSize = 33_554_432

  /// Opens a session with what answers at `otherEnd`.
  init(
    at end: SocketEnd, _ otherEnd: SocketEnd, _ cancellable: UnsafeMutablePointer<GCancellable>
  ) throws(ServiceFailure) {
    // Otherwise GLib would report the events of the connection to the program's own context.
    raw = try EventContext().asCurrent { () throws(ServiceFailure) in
      let connection = try end.connection(with: otherEnd, cancellable)
      defer { g_object_unref(UnsafeMutableRawPointer(connection)) }
      guard let object = SecretServiceObject.make(connection) else {
        throw .failed("libsecret could not create an object for the service")
      }
      var error: UnsafeMutablePointer<GError>?
      guard g_initable_init(object, cancellable, &error) != 0,
        secret_service_ensure_session_sync(object, cancellable, &error) != 0
      else {
        g_object_unref(UnsafeMutableRawPointer(object))
        throw ServiceFailure(consuming: error)
      }
      return object
    }
    path = secret_service_get_session_dbus_path(raw).map { String(cString: $0) } ?? ""
  }

  deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

  func seal(_ secret: SecretBytes, _ contentType: String? = nil) -> Variant {
    secret.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        // libsecret copies the bytes into locked memory, and wipes them when the value is released.
        let value = secret_value_new(
          bytes.baseAddress?.assumingMemoryBound(to: gchar.self), gssize(bytes.count),
          contentType ?? "text/plain")
        defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
        return Variant(sinking: secret_service_encode_dbus_secret(raw, value))
      }
    }
  }

  func open(_ sealed: Variant?) throws(ServiceFailure) -> SecretBytes {
    if let sealed, g_variant_get_size(sealed.raw) > Self.maximumSealedSize {
      throw .error(
        .tooLarge, "The value in the keyring is larger than \(Self.maximumSealedSize) bytes.",
        advice: "Read it with the program that stored it.")
    }
    // libsecret does not check the type before it reads.
    guard let sealed, sealed.isSecret, let value = secret_service_decode_dbus_secret(raw, sealed.raw) else {
      throw .session(.malformed)
    }
    defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
    var length: gsize = 0
    let bytes = secret_value_get(value, &length)
    return SecretBytes(count: Int(length)) { target in
      if let bytes { target.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: Int(length))) }
    }
  }
}
#endif
