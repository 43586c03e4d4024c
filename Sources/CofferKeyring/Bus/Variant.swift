#if Keyring
internal import CLibsecret

/// A D-Bus value: a reference to a `GVariant`, released once.
///
/// Properties that read a value are `nil` if it has another type, because a service may send anything.
final class Variant {
  let raw: OpaquePointer

  /// Takes over a floating reference, or adds a reference to a value that has an owner.
  init(sinking raw: OpaquePointer) { self.raw = g_variant_ref_sink(raw) }

  /// Takes over a full reference.
  init(owning raw: OpaquePointer) { self.raw = raw }

  deinit { g_variant_unref(raw) }

  // MARK: Creation

  /// `text` must not contain a NUL. Identifiers and metadata are validated before they get here.
  static func string(_ text: String) -> Variant { Variant(sinking: g_variant_new_string(text)) }

  static func boolean(_ value: Bool) -> Variant { Variant(sinking: g_variant_new_boolean(value ? 1 : 0)) }

  static func unsigned32(_ value: UInt32) -> Variant { Variant(sinking: g_variant_new_uint32(value)) }

  /// The descriptor at `index` of those that are sent with the message.
  static func handle(_ index: Int32) -> Variant { Variant(sinking: g_variant_new_handle(index)) }

  /// `path` must be a valid object path. GDBus validates every ``path`` that a service sends.
  static func path(_ path: String) -> Variant { Variant(sinking: g_variant_new_object_path(path)) }

  static func paths(_ paths: [String]) -> Variant { array(of: "o", paths.map(Variant.path)) }

  static func boxed(_ value: Variant) -> Variant { Variant(sinking: g_variant_new_variant(value.raw)) }

  static func tuple(_ children: [Variant]) -> Variant {
    withExtendedLifetime(children) {
      Variant(sinking: g_variant_new_tuple(children.map { $0.raw }, gsize(children.count)))
    }
  }

  /// An `a{ss}`, sorted by key.
  static func dictionary(_ entries: [String: String]) -> Variant {
    array(of: "{ss}", entries.sorted { $0.key < $1.key }.map { entry(string($0.key), string($0.value)) })
  }

  /// An `a{sv}`.
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

  /// The type in the notation of D-Bus, such as `a{ss}`.
  var signature: String { g_variant_get_type_string(raw).map { String(cString: $0) } ?? "" }

  var count: Int { g_variant_is_container(raw) == 0 ? 0 : Int(g_variant_n_children(raw)) }

  private var type: Character {
    Character(Unicode.Scalar(UInt8(truncatingIfNeeded: g_variant_classify(raw).rawValue)))
  }

  var string: String? { type == "s" ? text : nil }

  var path: String? { type == "o" ? text : nil }

  private var text: String? {
    var length: gsize = 0
    guard let bytes = g_variant_get_string(raw, &length) else { return nil }
    let text = UnsafeRawBufferPointer(start: bytes, count: Int(length))
    return String(validating: text, as: UTF8.self)
  }

  var boolean: Bool? { type == "b" ? g_variant_get_boolean(raw) != 0 : nil }

  var unsigned: UInt64? { type == "t" ? UInt64(g_variant_get_uint64(raw)) : nil }

  var unsigned32: UInt32? { type == "u" ? g_variant_get_uint32(raw) : nil }

  /// The elements of an array, a tuple or a dictionary entry.
  var children: [Variant] {
    (0..<count).map { Variant(owning: g_variant_get_child_value(raw, gsize($0))) }
  }

  subscript(index: Int) -> Variant? {
    index < count ? Variant(owning: g_variant_get_child_value(raw, gsize(index))) : nil
  }

  /// Returns the element at `index` as `type` reads it. Throws `.malformed` if there is none of that type.
  func element<Value>(_ index: Int, _ type: (Variant) -> Value?) throws(ServiceFailure) -> Value {
    guard let value = self[index].flatMap(type) else { throw .malformed }
    return value
  }

  /// Returns the object path at `index`, or `nil` if it is `/`, which stands for no object.
  func objectPath(_ index: Int) throws(ServiceFailure) -> String? {
    let path = try element(index, \.path)
    return path == "/" ? nil : path
  }

  /// Whether the type is that of a secret in the protocol: session, parameters, value and content type.
  var isSecret: Bool { signature == "(oayays)" }

  /// The entries of an `a{o(oayays)}`: secrets by the paths of their items.
  var secrets: [(String, Variant)]? {
    guard signature == "a{o(oayays)}" else { return nil }
    return children.compactMap { entry in
      guard let path = entry[0]?.path, let secret = entry[1] else { return nil }
      return (path, secret)
    }
  }

  var unboxed: Variant? { type == "v" ? Variant(owning: g_variant_get_variant(raw)) : nil }

  var strings: [String]? { elements("as", \.string) }

  var paths: [String]? { elements("ao", \.path) }

  private func elements(_ signature: String, _ type: (Variant) -> String?) -> [String]? {
    self.signature == signature ? children.compactMap(type) : nil
  }

  /// The entries of an `a{ss}`.
  var dictionary: [String: String]? { entries(\.string) }

  /// The entries of an `a{sv}`.
  var properties: [String: Variant]? { entries(\.unboxed) }

  private func entries<Value>(_ type: (Variant) -> Value?) -> [String: Value]? {
    guard self.type == "a" else { return nil }
    var result: [String: Value] = [:]
    for entry in children {
      guard let key = entry[0]?.string, let value = entry[1].flatMap(type) else { return nil }
      result[key] = value
    }
    return result
  }
}
#endif
