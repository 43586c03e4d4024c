#if Keyring
internal import CLibsecret

/// A D-Bus value: a reference to a `GVariant`, released once.
///
/// Readers give `nil` where the value is of another type, since what a service sends is not to be trusted.
final class Variant {
  let raw: OpaquePointer

  /// Takes over a floating reference, or adds one to a value that has an owner.
  init(sinking raw: OpaquePointer) { self.raw = g_variant_ref_sink(raw) }

  /// Takes over a full reference.
  init(owning raw: OpaquePointer) { self.raw = raw }

  deinit { g_variant_unref(raw) }

  // MARK: Making

  /// `text` must have no NUL: what the package stores has been validated.
  static func string(_ text: String) -> Variant { Variant(sinking: g_variant_new_string(text)) }

  static func boolean(_ value: Bool) -> Variant { Variant(sinking: g_variant_new_boolean(value ? 1 : 0)) }

  static func unsigned32(_ value: UInt32) -> Variant { Variant(sinking: g_variant_new_uint32(value)) }

  /// `path` comes from the service, and so has been validated by GDBus.
  static func path(_ path: String) -> Variant { Variant(sinking: g_variant_new_object_path(path)) }

  static func paths(_ paths: [String]) -> Variant { array(of: "o", paths.map(Variant.path)) }

  static func boxed(_ value: Variant) -> Variant { Variant(sinking: g_variant_new_variant(value.raw)) }

  static func tuple(_ children: [Variant]) -> Variant {
    withExtendedLifetime(children) {
      Variant(sinking: g_variant_new_tuple(children.map { $0.raw }, gsize(children.count)))
    }
  }

  /// `a{ss}`, in a fixed order.
  static func dictionary(_ entries: [String: String]) -> Variant {
    array(of: "{ss}", entries.sorted { $0.key < $1.key }.map { entry(string($0.key), string($0.value)) })
  }

  /// `a{sv}`.
  static func properties(_ entries: [(String, Variant)]) -> Variant {
    array(of: "{sv}", entries.map { entry(string($0.0), boxed($0.1)) })
  }

  private static func entry(_ key: Variant, _ value: Variant) -> Variant {
    Variant(sinking: g_variant_new_dict_entry(key.raw, value.raw))
  }

  private static func array(of type: String, _ children: [Variant]) -> Variant {
    let elementType = g_variant_type_new(type)
    defer { g_variant_type_free(elementType) }
    return withExtendedLifetime(children) {
      Variant(sinking: g_variant_new_array(elementType, children.map { $0.raw }, gsize(children.count)))
    }
  }

  // MARK: Reading

  private var type: Character {
    Character(Unicode.Scalar(UInt8(truncatingIfNeeded: g_variant_classify(raw).rawValue)))
  }

  /// A string or an object path.
  var string: String? {
    guard type == "s" || type == "o" else { return nil }
    var length: gsize = 0
    guard let bytes = g_variant_get_string(raw, &length) else { return nil }
    let text = UnsafeRawBufferPointer(start: bytes, count: Int(length))
    return String(validating: text, as: UTF8.self)
  }

  var boolean: Bool? { type == "b" ? g_variant_get_boolean(raw) != 0 : nil }

  var unsigned: UInt64? { type == "t" ? UInt64(g_variant_get_uint64(raw)) : nil }

  /// The elements of an array, a tuple or a dictionary entry.
  var children: [Variant] {
    guard g_variant_is_container(raw) != 0 else { return [] }
    return (0..<g_variant_n_children(raw)).map { Variant(owning: g_variant_get_child_value(raw, $0)) }
  }

  /// One element of a container.
  subscript(index: Int) -> Variant? {
    guard g_variant_is_container(raw) != 0, index < Int(g_variant_n_children(raw)) else { return nil }
    return Variant(owning: g_variant_get_child_value(raw, gsize(index)))
  }

  /// Whether it has the type of a secret on the bus: session, parameters, value, content type.
  var isSecret: Bool {
    g_variant_get_type_string(raw).map { String(cString: $0) } == "(oayays)"
  }

  /// What is in a value of type `v`.
  var unboxed: Variant? { type == "v" ? Variant(owning: g_variant_get_variant(raw)) : nil }

  /// The strings of an `as` or `ao`.
  var strings: [String] { children.compactMap(\.string) }

  /// The entries of an `a{ss}`.
  var dictionary: [String: String]? {
    guard type == "a" else { return nil }
    var result: [String: String] = [:]
    for entry in children {
      guard let key = entry[0]?.string, let value = entry[1]?.string else { return nil }
      result[key] = value
    }
    return result
  }

  /// The entries of an `a{sv}`.
  var properties: [String: Variant]? {
    guard type == "a" else { return nil }
    var result: [String: Variant] = [:]
    for entry in children {
      guard let key = entry[0]?.string, let value = entry[1]?.unboxed else { return nil }
      result[key] = value
    }
    return result
  }
}
#endif
