#if SwiftConfiguration
internal import Coffer
internal import Configuration
internal import FoundationEssentials

extension ConfigContent {
  /// Decodes the bytes of the secret `identifier`. Throws `.decodingFailed` without the coder's error, which quotes the
  /// value.
  init(decoding secret: SecretBytes, as type: ConfigType, _ identifier: SecretIdentifier) throws(SecretError) {
    do {
      self = try Self.decode(secret, as: type, by: StandardSecretCoder())
    } catch {
      throw SecretError(
        .decodingFailed, "The secret \(identifier) does not decode as a configuration value of the type \(type).",
        advice: type.rawValue.hasSuffix("Array")
          ? "Store it as a JSON array, or read it as another type."
          : "Read it as another type, or store a new value.",
        identifier: identifier)
    }
  }

  private static func decode(
    _ secret: SecretBytes, as type: ConfigType, by coder: StandardSecretCoder
  ) throws -> ConfigContent {
    switch type {
    case .string: .string(try coder.decode(String.self, from: secret))
    case .int: .int(try coder.decode(Int.self, from: secret))
    case .double: .double(try coder.decode(Double.self, from: secret))
    case .bool: .bool(try coder.decode(Bool.self, from: secret))
    case .bytes: .bytes(try coder.decode([UInt8].self, from: secret))
    case .stringArray: .stringArray(try coder.decode([String].self, from: secret))
    case .intArray: .intArray(try coder.decode([Int].self, from: secret))
    case .doubleArray: .doubleArray(try coder.decode([Double].self, from: secret))
    case .boolArray: .boolArray(try coder.decode([Bool].self, from: secret))
    case .byteChunkArray: .byteChunkArray(try coder.decode([Data].self, from: secret).map { [UInt8]($0) })
    }
  }
}
#endif
