public import CofferCore
internal import FoundationEssentials

/// How a value becomes a secret's bytes, and comes back.
///
/// Called from any thread, and never while a lock of Coffer's is held. What either method throws is reported
/// as `.encodingFailed` or `.decodingFailed` without its text, because a coder's errors quote the value.
public protocol SecretCoder: Sendable {
  func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes
  func decode<Value: Decodable>(_ type: Value.Type, from secret: borrowing SecretBytes) throws -> Value
}

/// The coder where none is given: a `String` is its UTF-8 bytes, `Data` and `[UInt8]` are themselves, and
/// everything else is JSON, with keys sorted.
///
/// So what a program stores as text is what `secret get` prints. Bytes that are not UTF-8 do not decode as a
/// `String`.
public struct StandardSecretCoder: SecretCoder {
  public init() {}

  public func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes {
    // By the types themselves: an empty array of anything casts to an empty array of bytes.
    if Value.self == String.self, let text = value as? String { return SecretBytes(copying: text) }
    if Value.self == [UInt8].self, let bytes = value as? [UInt8] { return SecretBytes(copying: bytes) }
    if Value.self == Data.self, let data = value as? Data { return Self.secret(data) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var json = try encoder.encode(value)
    defer { json.resetBytes(in: json.startIndex..<json.endIndex) }
    return Self.secret(json)
  }

  public func decode<Value: Decodable>(_ type: Value.Type, from secret: borrowing SecretBytes) throws -> Value
  {
    if Value.self == String.self, let text = try secret.string() as? Value { return text }
    return try secret.withBytes { (bytes) throws -> Value in
      try bytes.withUnsafeBytes { bytes in
        if Value.self == [UInt8].self, let array = [UInt8](bytes) as? Value { return array }
        if Value.self == Data.self, let data = Data(bytes) as? Value { return data }
        // Where the bytes are: the decoder has no copy that it would leave behind.
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
