#if Keyring
internal import CLibsecret
internal import CofferCore

/// A session with one process of the Secret Service, and the calls that transfer a secret.
///
/// libsecret encrypts each secret with a key that it negotiates with the service. If the service supports no
/// encryption, libsecret sends secrets unencrypted; the bus is a local socket of the user.
///
/// The session is bound to the service's unique bus name. Another process that takes over the well-known name
/// therefore never gets a secret of this session.
final class SecretSession: @unchecked Sendable {  // `raw` is set once, and libsecret reads it from any thread
  let service: SecretServiceProxy
  private let raw: UnsafeMutablePointer<SecretService>
  private let path: String

  /// Opens a session with `service`, whose name is a unique one, within `timeout`.
  init(_ service: SecretServiceProxy, timeout: Duration) throws(ServiceFailure) {
    self.service = service
    raw = try EventContext().asCurrent { () throws(ServiceFailure) in
      let deadline = TimedCancellation(after: timeout)
      guard let object = SecretServiceObject.make(service.bus, owner: service.name) else {
        throw .failed("libsecret could not create an object for the service")
      }
      var error: UnsafeMutablePointer<GError>?
      guard g_initable_init(OpaquePointer(object), deadline.raw, &error) != 0,
        secret_service_ensure_session_sync(object, deadline.raw, &error) != 0
      else {
        g_object_unref(UnsafeMutableRawPointer(object))
        throw ServiceFailure(consuming: error, timeout: timeout)
      }
      return object
    }
    path = secret_service_get_session_dbus_path(raw).map { String(cString: $0) } ?? ""
  }

  deinit { g_object_unref(raw) }

  // MARK: Calls

  func secret(of item: String) throws(ServiceFailure) -> SecretBytes {
    try open(service.call(item, .item, "GetSecret", [.path(path)])[0])
  }

  func setSecret(of item: String, to secret: borrowing SecretBytes) throws(ServiceFailure) {
    _ = try service.call(item, .item, "SetSecret", [seal(secret)])
  }

  /// Creates an item, or overwrites an item that has all of `attributes`. Returns the prompt that must be
  /// completed first, or `nil`.
  func createItem(
    in collection: String, label: String, attributes: [String: String], _ secret: borrowing SecretBytes
  ) throws(ServiceFailure) -> String? {
    let item = SecretServiceProxy.Interface.item.rawValue
    let properties = Variant.properties([
      ("\(item).Label", .string(label)), ("\(item).Attributes", .dictionary(attributes)),
    ])
    let arguments = [properties, seal(secret), .boolean(true)]
    return try service.call(collection, .collection, "CreateItem", arguments).objectPath(1)
  }

  // MARK: Encryption

  private func seal(_ secret: borrowing SecretBytes) -> Variant {
    secret.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        // libsecret copies the bytes into locked memory, and wipes them when the value is released.
        let value = secret_value_new(
          bytes.baseAddress?.assumingMemoryBound(to: gchar.self), gssize(bytes.count), "text/plain")
        defer { secret_value_unref(UnsafeMutableRawPointer(value)) }
        return Variant(sinking: secret_service_encode_dbus_secret(raw, value))
      }
    }
  }

  private func open(_ sealed: Variant?) throws(ServiceFailure) -> SecretBytes {
    // libsecret does not check the type before it reads.
    guard let sealed, sealed.isSecret, let value = secret_service_decode_dbus_secret(raw, sealed.raw) else {
      throw .malformed
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
