#if Keyring
internal import CLibsecret
internal import CofferCore

/// A session with one running Secret Service: secrets cross the bus encrypted, with a key that libsecret
/// agreed on with the service. Only to a service that knows no encryption does libsecret send them as they
/// are; the bus is a local socket of the user's.
///
/// It is bound to the service's unique name, so that a secret is never sent to another process that has
/// taken over the well-known one.
final class SecretSession: @unchecked Sendable {  // written only before `init` returns
  private let raw: UnsafeMutablePointer<SecretService>
  /// The session's object path.
  let path: String

  /// Opens a session with `owner`, within `seconds`.
  init(_ connection: BusConnection, owner: String, seconds: Double) throws(ServiceFailure) {
    raw = try EventContext().asCurrent { () throws(ServiceFailure) in
      let deadline = Cancellation(after: seconds)
      guard let service = SecretServiceObject.make(connection, owner: owner) else {
        throw .failed("libsecret made no object for the service")
      }
      var error: UnsafeMutablePointer<GError>?
      guard g_initable_init(OpaquePointer(service), deadline.raw, &error) != 0,
        secret_service_ensure_session_sync(service, deadline.raw, &error) != 0
      else {
        g_object_unref(UnsafeMutableRawPointer(service))
        throw ServiceFailure(consuming: error, seconds: seconds)
      }
      return service
    }
    path = secret_service_get_session_dbus_path(raw).map { String(cString: $0) } ?? ""
  }

  deinit { g_object_unref(raw) }

  /// The secret, encrypted for this session, as the service takes it.
  func seal(_ secret: borrowing SecretBytes) -> Variant {
    secret.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        // libsecret copies into locked memory, and wipes that when the value is released.
        let value = secret_value_new(
          bytes.baseAddress?.assumingMemoryBound(to: gchar.self),
          gssize(bytes.count),
          "text/plain"
        )
        defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
        return Variant(sinking: secret_service_encode_dbus_secret(raw, value))
      }
    }
  }

  /// The secret in what the service sent, or `nil` where that is not one of this session.
  func open(_ sealed: Variant) -> SecretBytes? {
    // libsecret does not look at the type before it reads.
    guard sealed.isSecret, let value = secret_service_decode_dbus_secret(raw, sealed.raw) else {
      return nil
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
