public import CofferCore
internal import FoundationEssentials

/// Converts values to the bytes of secrets and back.
///
/// The methods are called from any thread, and never while Coffer holds a lock. An error that they throw becomes
/// `.encodingFailed` or `.decodingFailed` without its text, because the errors of coders quote the value.
public protocol SecretCoder: Sendable {
  /// Returns the bytes to store for `value`. Throws if it cannot be encoded.
  func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes

  /// Returns the value of the type `type` that `secret` encodes. Throws if the bytes do not encode such a value.
  func decode<Value: Decodable>(_ type: Value.Type, from secret: SecretBytes) throws -> Value
}

/// The coder of values that are created without a coder. It writes text where a shell would, and JSON otherwise.
///
/// | Type | Bytes |
/// |---|---|
/// | `String` | its UTF-8 |
/// | `Data`, `[UInt8]` | as they are |
/// | an enum or another `RawRepresentable` type with a `String` as raw value | the raw value, without quotation marks |
/// | `URL` | its absolute string |
/// | `UUID` | 36 characters, in upper case |
/// | `Date` | ISO 8601 in UTC, with a fraction of up to nine digits if there is one: `2026-11-22T08:30:00Z` |
/// | an optional of any of these | the same bytes |
/// | every other type | JSON with sorted keys |
///
/// A `Date` is also read from a number, which is the time since 1970 in seconds, as `date +%s` prints it. In arrays,
/// dictionaries and types of your own, all of these types are JSON as `JSONEncoder` writes it. Bytes that are not UTF-8
/// do not decode as text.
public struct StandardSecretCoder: SecretCoder {
  private let encoder: JSONEncoder
  private let decoder: JSONDecoder

  /// Creates a coder.
  public init() { self = Self.standard }
  private static let standard = StandardSecretCoder(encoder: jsonEncoder, decoder: JSONDecoder())

  /// Creates a coder with other settings for JSON.
  init(encoder: JSONEncoder, decoder: JSONDecoder) { (self.encoder, self.decoder) = (encoder, decoder) }

  static var jsonEncoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// Returns the bytes to store for `value`. Throws the errors of `JSONEncoder`, and `SecretError` for a `Date` outside
  /// the years 1 to 9999.
  public func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes {
    // Asks the type, because an empty array of any type can be cast to an empty array of bytes.
    if Value.self == [UInt8].self, let bytes = value as? [UInt8] { return SecretBytes(bytes) }
    if Value.self == Data.self, let data = value as? Data { return Self.secret(data) }
    if Value.self is any OptionalValue.Type, let optional = value as? any OptionalValue {
      return try optional.encoded(by: self) ?? SecretBytes("null")
    }
    if let text = try PlainText.text(of: value) { return SecretBytes(text) }
    var json = try encoder.encode(value)
    defer { json.resetBytes(in: json.startIndex..<json.endIndex) }
    return Self.secret(json)
  }

  /// Returns the value that `secret` encodes. Throws the errors of `JSONDecoder`, and `SecretError` if the text is not
  /// UTF-8 or not a text of that type.
  public func decode<Value: Decodable>(_ type: Value.Type, from secret: SecretBytes) throws -> Value {
    if let optional = type as? any OptionalValue.Type,
      let value = try optional.decodedOrNil(from: secret, by: self) as? Value
    {
      return value
    }
    if PlainText.isText(type) { return try PlainText.value(of: type, in: secret.string()) }
    return try secret.withBytes { (bytes) throws -> Value in
      try bytes.withUnsafeBytes { bytes in
        if Value.self == [UInt8].self, let array = [UInt8](bytes) as? Value { return array }
        if Value.self == Data.self, let data = Data(bytes) as? Value { return data }
        // Does not copy the bytes, because a copy would stay in memory.
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return try decoder.decode(type, from: Data()) }
        let json = Data(bytesNoCopy: .init(mutating: start), count: bytes.count, deallocator: .none)
        return try decoder.decode(type, from: json)
      }
    }
  }

  private static func secret(_ data: Data) -> SecretBytes {
    SecretBytes(count: data.count) { bytes in
      _ = data.withUnsafeBytes { $0.copyBytes(to: bytes) }
    }
  }
}
