public import CofferCore
internal import FoundationEssentials

/// Converts values to the bytes of secrets and back.
///
/// The methods are called from any thread, and never while Coffer holds a lock. An error that they throw becomes
/// `.encodingFailed` or `.decodingFailed` without its text, because the errors of coders quote the value.
public protocol SecretCoder: Sendable {
  /// Returns the bytes to store for `value`.
  func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes

  /// Returns the value of the type `type` that `secret` encodes.
  func decode<Value: Decodable>(_ type: Value.Type, from secret: borrowing SecretBytes) throws -> Value
}

/// The coder of values that are made without one. A `String` is stored as its UTF-8 bytes, `Data` and `[UInt8]` as
/// they are, and every other type as JSON with sorted keys.
///
/// Text is therefore stored without quotation marks, so that other programs can read it. Bytes that are not UTF-8
/// do not decode as a `String`.
public struct StandardSecretCoder: SecretCoder {
  /// Creates a coder. It has no state.
  public init() {}

  /// Returns the bytes to store for `value`. Throws the errors of `JSONEncoder`.
  public func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes {
    // By the type, because an empty array of any type can be cast to an empty array of bytes.
    if Value.self == String.self, let text = value as? String { return SecretBytes(copying: text) }
    if Value.self == [UInt8].self, let bytes = value as? [UInt8] { return SecretBytes(copying: bytes) }
    if Value.self == Data.self, let data = value as? Data { return Self.secret(data) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var json = try encoder.encode(value)
    defer { json.resetBytes(in: json.startIndex..<json.endIndex) }
    return Self.secret(json)
  }

  /// Returns the value that `secret` encodes. Throws the errors of `JSONDecoder`, and `SecretError` if a `String` is
  /// not UTF-8.
  public func decode<Value: Decodable>(_ type: Value.Type, from secret: borrowing SecretBytes) throws -> Value
  {
    if Value.self == String.self, let text = try secret.string() as? Value { return text }
    return try secret.withBytes { (bytes) throws -> Value in
      try bytes.withUnsafeBytes { bytes in
        if Value.self == [UInt8].self, let array = [UInt8](bytes) as? Value { return array }
        if Value.self == Data.self, let data = Data(bytes) as? Value { return data }
        // Without a copy, which would stay in memory.
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
          return try JSONDecoder().decode(type, from: Data())
        }
        let json = Data(bytesNoCopy: .init(mutating: start), count: bytes.count, deallocator: .none)
        return try JSONDecoder().decode(type, from: json)
      }
    }
  }

  private static func secret(_ data: Data) -> SecretBytes {
    SecretBytes(count: data.count) { bytes in
      _ = data.withUnsafeBytes { $0.copyBytes(to: bytes) }
    }
  }
}
