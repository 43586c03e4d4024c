public import CofferCore

/// The error of ``SecurelyStoredValue/refreshed(timeout:isolation:unless:by:)`` for a new value that could not be
/// stored. The service that gave it may not give it again, so store it when the store can be written: for a value with
/// the standard coder, `token.set(StandardSecretCoder().decode(Token.self, from: error.value))`.
public struct UnstoredValue: Error, CustomStringConvertible {
  /// The bytes of the new value, as they would be stored. Descriptions do not show them.
  public let value: SecretBytes
  /// The error of the last attempt to store it.
  public let error: SecretError

  /// Says what happened, without the value.
  public var description: String { "A new value could not be stored, and is only in this error. \(error)" }
}
