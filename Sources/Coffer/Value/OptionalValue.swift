internal import CofferCore

/// `Optional` as the type of a value. It is flattened at run time: the coder sees only the wrapped type, and `nil` is
/// an absent secret.
protocol OptionalValue {
  /// Decodes the wrapped type. Returns `nil` if the bytes are an encoded `nil`.
  static func decoded(from secret: SecretBytes, by coder: any SecretCoder) throws -> Self?

  /// Decodes the wrapped type, and an encoded `nil` as `nil`.
  static func decodedOrNil(from secret: SecretBytes, by coder: any SecretCoder) throws -> Self

  /// Encodes the wrapped value, or returns `nil` if there is none.
  func encoded(by coder: any SecretCoder) throws -> SecretBytes?
}

extension Optional: OptionalValue where Wrapped: Codable {
  static func decodedOrNil(from secret: SecretBytes, by coder: any SecretCoder) throws -> Self {
    try decoded(from: secret, by: coder) ?? .none
  }

  static func decoded(from secret: SecretBytes, by coder: any SecretCoder) throws -> Self? {
    do {
      return try coder.decodeFlattened(Wrapped.self, from: secret).map { .some($0) }
    } catch {
      // Another program may have stored the JSON text `null`. The standard coder would call this method again.
      if coder is StandardSecretCoder {
        if secret.isEqual(to: SecretBytes("null")) { return nil }
      } else if case .none = try coder.decode(Self.self, from: secret) {
        return nil
      }
      throw error
    }
  }

  func encoded(by coder: any SecretCoder) throws -> SecretBytes? {
    guard let wrapped = self else { return nil }
    return try coder.encodeFlattened(wrapped)
  }
}

extension SecretCoder {
  /// Encodes `value`, or the value that it wraps. Returns `nil` if `value` is an optional without a value.
  func encodeFlattened<Value: Encodable>(_ value: Value) throws -> SecretBytes? {
    // Asks the type, because a cast of the value would unwrap it.
    if Value.self is any OptionalValue.Type, let optional = value as? any OptionalValue {
      return try optional.encoded(by: self)
    }
    return try encode(value)
  }

  /// Decodes a value of `type`, or of the type that it wraps. Returns `nil` if the bytes are an encoded `nil`.
  func decodeFlattened<Value: Decodable>(_ type: Value.Type, from secret: SecretBytes) throws -> Value? {
    guard let optional = type as? any OptionalValue.Type else { return try decode(type, from: secret) }
    guard let value = try optional.decoded(from: secret, by: self) else { return nil }
    return value as? Value
  }

  /// Decodes a stored value as ``decodeFlattened(_:from:)`` does. Throws `.decodingFailed`. The coder's error is
  /// dropped, because it quotes the value.
  func decodeStored<Value: Decodable>(_ type: Value.Type, from stored: EncodedValue) throws(SecretError) -> Value? {
    do {
      return try decodeFlattened(type, from: stored.secret)
    } catch {
      throw SecretError(
        .decodingFailed, "The stored value does not decode as \(type).",
        advice: "Read it as the type that was stored, or store a new value.")
    }
  }
}
