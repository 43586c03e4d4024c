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

  /// Opens a session with the service that answers at `otherEnd`.
  init(
    at end: SocketEnd, _ otherEnd: SocketEnd, _ cancellable: UnsafeMutablePointer<GCancellable>
  ) throws(ServiceFailure) {
    // Without a context of its own, GLib would report the events of the connection to the program's context.
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

/// Creates a `SecretService` for a given connection, which does not lead to a bus.
///
/// libsecret's constructor replaces the given properties with the shared session bus and the well-known name. GObject
/// allows those properties to be set only during construction. The constructor of this derived class therefore sets
/// them again.
private enum SecretServiceObject {
  /// The derived class, or 0 if it could not be registered.
  private static let type: GType = {
    var parent = GTypeQuery()
    g_type_query(secret_service_get_type(), &parent)
    return g_type_register_static_simple(
      parent.type, "CofferSecretService", guint(parent.class_size),
      { derived, _ in
        derived?.assumingMemoryBound(to: GObjectClass.self).pointee.constructor = construct
      },
      guint(parent.instance_size), nil, GTypeFlags(rawValue: 0))
  }()

  private typealias Constructor =
    @convention(c) (GType, guint, UnsafeMutablePointer<GObjectConstructParam>?)
    -> UnsafeMutablePointer<GObject>?

  private static let construct: Constructor = { type, count, properties in
    let parent = g_type_class_peek(secret_service_get_type())?.assumingMemoryBound(to: GObjectClass.self)
    guard let object = parent?.pointee.constructor?(type, count, properties) else { return nil }
    for property in UnsafeBufferPointer(start: properties, count: Int(count)) {
      guard let name = property.pspec.pointee.name, let value = property.value else { continue }
      if ["g-name", "g-flags", "g-bus-type"].contains(String(cString: name)) {
        g_object_set_property(object, name, value)
      }
    }
    return object
  }

  /// Returns an object that is not initialised yet, or `nil` if its class could not be registered.
  static func make(_ connection: OpaquePointer) -> OpaquePointer? {
    guard type != 0 else { return nil }
    let flags =
      G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES.rawValue
      | G_DBUS_PROXY_FLAGS_DO_NOT_CONNECT_SIGNALS.rawValue
      | G_DBUS_PROXY_FLAGS_DO_NOT_AUTO_START.rawValue
    let names = ["g-connection", "g-name", "g-flags", "g-bus-type", "g-default-timeout"]
    var values = [GValue](repeating: GValue(), count: names.count)
    g_value_init(&values[0], g_dbus_connection_get_type())
    g_value_set_object(&values[0], UnsafeMutableRawPointer(connection))
    g_value_init(&values[1], g_type_from_name("gchararray"))
    g_value_set_string(&values[1], nil)  // the other end has no name
    g_value_init(&values[2], g_dbus_proxy_flags_get_type())
    g_value_set_flags(&values[2], flags)
    g_value_init(&values[3], g_bus_type_get_type())
    g_value_set_enum(&values[3], G_BUS_TYPE_NONE.rawValue)
    // No timeout, because the other end answers only after this process has connected to the bus.
    g_value_init(&values[4], g_type_from_name("gint"))
    g_value_set_int(&values[4], .max)
    defer { for index in values.indices { g_value_unset(&values[index]) } }

    let copies = names.map { g_strdup($0) }
    defer { for copy in copies { g_free(copy) } }
    var pointers = copies.map { UnsafePointer($0) }
    return OpaquePointer(g_object_new_with_properties(type, guint(names.count), &pointers, values))
  }
}
#endif
