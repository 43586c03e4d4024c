public import CofferCore

/// What ``SecurelyStoredValue/refreshed(timeout:isolation:unless:by:)`` throws if it cannot store a new value. The
/// service may not give the value a second time, so store it as soon as the store can be written. With the standard
/// coder: `token.set(StandardSecretCoder().decode(Token.self, from: error.value))`.
public struct UnstoredValue: Error, CustomStringConvertible {
  /// The bytes of the new value, as they would be stored. Descriptions do not show them.
  public let value: SecretBytes
  /// The error of the last attempt to store it.
  public let error: SecretError

  /// Says what happened, without the value.
  public var description: String { "A new value could not be stored, and is only in this error. \(error)" }
}
