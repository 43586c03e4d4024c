public import CofferCore

/// Reads and writes a stored value, for code that does not know where the value is stored.
///
/// A property of the value has a binding of its own, such as `$settings.binding.theme`. In a binding of a wrapper,
/// setting the property changes the value in one step, as `update` does, and keeps the other properties.
@dynamicMemberLookup
public struct StoredBinding<Value: Sendable>: Sendable {
  let getter: @Sendable () throws(SecretError) -> Value
  let setter: @Sendable (Value) throws(SecretError) -> Void
  let editor: @Sendable ((inout Value) -> Void) throws(SecretError) -> Void

  /// The binding of a property. Its methods throw what `get()` and `update` of the value throw.
  public subscript<Part: Sendable>(
    dynamicMember keyPath: any WritableKeyPath<Value, Part> & Sendable
  ) -> StoredBinding<Part> {
    let edit: @Sendable ((inout Part) -> Void) throws(SecretError) -> Void = { change throws(SecretError) in
      try editor { change(&$0[keyPath: keyPath]) }
    }
    return StoredBinding<Part>(
      getter: { () throws(SecretError) in try get()[keyPath: keyPath] },
      setter: { part throws(SecretError) in try edit { $0 = part } }, editor: edit)
  }

  /// Returns the current value. Throws what the value's own `get()` throws.
  public func get() throws(SecretError) -> Value { try getter() }

  /// Stores the value. Throws what the value's own `set(_:)` throws.
  public func set(_ value: Value) throws(SecretError) { try setter(value) }
}

extension StoredBinding {
  /// Creates a binding of two closures. Setting a property of the value calls both.
  public init(
    get: @escaping @Sendable () throws(SecretError) -> Value,
    set: @escaping @Sendable (Value) throws(SecretError) -> Void
  ) {
    self.init(getter: get, setter: set) { change throws(SecretError) in
      var value = try get()
      change(&value)
      try set(value)
    }
  }
}
