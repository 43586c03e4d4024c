public import CofferCore

/// The two sides of a stored value, for code that reads and writes it without knowing where it is.
public struct StoredBinding<Value: Sendable>: Sendable {
  private let getter: @Sendable () throws(SecretError) -> Value
  private let setter: @Sendable (Value) throws(SecretError) -> Void

  /// Creates a binding of two closures.
  public init(
    get: @escaping @Sendable () throws(SecretError) -> Value,
    set: @escaping @Sendable (Value) throws(SecretError) -> Void
  ) {
    getter = get
    setter = set
  }

  /// Returns the current value. Throws what the value's own `get()` throws.
  public func get() throws(SecretError) -> Value { try getter() }

  /// Stores the value. Throws what the value's own `set(_:)` throws.
  public func set(_ value: Value) throws(SecretError) { try setter(value) }
}
