public import CofferCore
public import Observation

/// A value with a default, stored in a keyring, a vault or another backend.
///
/// ```swift
/// @StoredValue(key: "hasHaptics", service: "com.example.app")
/// var hasHaptics = false
///
/// try $hasHaptics.toggle()
/// try $hasHaptics.reset()                    // false again
/// ```
///
/// The default is what a read returns if nothing is stored. It is not stored itself. A type that is not `Codable` does
/// not compile. An optional value needs no default, and storing `nil` deletes it.
///
/// Like ``SecurelyStoredValue``, it asks the backend at each read, may be used by any thread and actor, notifies
/// Observation, and has `async` overloads of its methods.
@propertyWrapper
public final class StoredValue<Value: Codable & Sendable>: Sendable, Observable, EditableValue {
  let content: TypedValue<Value>
  package let key: String
  /// The value that a read returns if nothing is stored.
  public let defaultValue: Value

  /// Creates the value for `key`. Reads nothing. The parameters are those of
  /// ``SecurelyStoredValue/init(key:in:service:backend:coder:label:history:)``.
  public convenience init(
    key: String, default defaultValue: Value, in scope: SecretScope? = nil, service: String? = nil,
    backend: (any SecretBackend)? = nil, coder: any SecretCoder = StandardSecretCoder(), label: String? = nil,
    history: History = .none
  ) {
    self.init(key, defaultValue, TypedValue(key, SecretScope(scope, service, backend), .init(coder), label, history))
  }

  /// Creates the value for `key` with the default of the property: `@StoredValue(key: "count") var count = 0`.
  public convenience init(
    wrappedValue: Value, key: String, in scope: SecretScope? = nil, service: String? = nil,
    backend: (any SecretBackend)? = nil, coder: any SecretCoder = StandardSecretCoder(), label: String? = nil,
    history: History = .none
  ) {
    self.init(key, wrappedValue, TypedValue(key, SecretScope(scope, service, backend), .init(coder), label, history))
  }

  init(_ key: String, _ defaultValue: Value, _ content: TypedValue<Value>) {
    (self.key, self.defaultValue, self.content) = (key, defaultValue, content)
  }

  /// The value, or the default if nothing is stored or if reading fails. After a failure, ``lastError`` is set.
  public var wrappedValue: Value {
    get { content.getOrNil() ?? defaultValue }
    @available(*, unavailable, message: "Use $NAME.set(_:), which can throw.")
    set { fatalError() }
  }

  /// The object itself, for calls such as `$count.set(…)`.
  public var projectedValue: StoredValue<Value> { self }

  /// The error of the call on this object that ended last, in any thread, or `nil` if it succeeded.
  public var lastError: SecretError? { content.lastError }

  /// Returns the value, or the default if nothing is stored. Throws the backend's errors, and `.decodingFailed` if the
  /// stored bytes are not a `Value`.
  public func get() throws(SecretError) -> Value { try content.get() ?? defaultValue }

  /// Stores the value in one durable step. Throws the backend's errors, and `.encodingFailed`.
  public func set(_ value: Value) throws(SecretError) { try content.set(value) }

  /// Deletes the stored value, so that reads return the default. Succeeds if there is none. Throws the backend's
  /// errors.
  public func reset() throws(SecretError) { try content.set(nil) }

  /// Removes the stored value with its earlier versions, as `erase` of ``SecurelyStoredValue`` does. Throws its errors.
  @discardableResult
  public func erase() throws(SecretError) -> Bool { try content.erase() }

  /// Changes the value in one step, and returns the result of `change`, as `update` of ``SecurelyStoredValue`` does. If
  /// nothing is stored, `change` gets the default. Throws the errors of `change`, of `get()` and of `set(_:)`, and
  /// `.conflict` after 1000 attempts.
  public func update<R>(_ change: (inout Value) throws -> R) throws -> R {
    try content.update(fallback: defaultValue, change).get()
  }

  /// Changes the value. The methods of ``EditableValue`` call this. `change` gets the default if nothing is stored.
  /// Throws the errors of `get()` and of `set(_:)`, and `.conflict` after 1000 attempts.
  public func edit<R>(_ change: (inout Value?) -> R) throws(SecretError) -> R {
    try content.edit(fallback: defaultValue) { (value: inout Value?) throws(Never) -> R in change(&value) }.get()
  }

  /// A new stream of the current value and each change after it, by the rules of ``SecurelyStoredValue/values``. The
  /// default stands for an absent value, and for one that cannot be read.
  public var values: AsyncStream<Value> {
    let fallback = defaultValue
    return content.values { $0 ?? fallback }
  }

  /// The same as ``values``, with the error of a value that cannot be read.
  public var results: AsyncStream<Result<Value, SecretError>> {
    let fallback = defaultValue
    return content.results { $0.map { $0 ?? fallback } }
  }

  /// The value as a pair of closures, for code that reads and writes a value without knowing where it is.
  public var binding: StoredBinding<Value> {
    StoredBinding(
      getter: { () throws(SecretError) in try self.get() },
      setter: { value throws(SecretError) in try self.set(value) },
      editor: { change throws(SecretError) in
        try self.content.update(fallback: self.defaultValue) { value throws(Never) in change(&value) }.get()
      })
  }
}

extension StoredValue where Value: ExpressibleByNilLiteral {
  /// Creates an optional value whose default is `nil`.
  public convenience init(
    key: String, in scope: SecretScope? = nil, service: String? = nil, backend: (any SecretBackend)? = nil,
    coder: any SecretCoder = StandardSecretCoder(), label: String? = nil, history: History = .none
  ) {
    self.init(key, nil, TypedValue(key, SecretScope(scope, service, backend), .init(coder), label, history))
  }
}

// MARK: Async

extension StoredValue {
  /// Returns the value, or the default if nothing is stored. Throws like the method without `async`.
  public func get() async throws(SecretError) -> Value {
    try await content.offPool { () throws(SecretError) in try self.get() }
  }

  /// Stores the value in one durable step. Throws like the method without `async`.
  public func set(_ value: Value) async throws(SecretError) {
    try await content.offPool { () throws(SecretError) in try self.set(value) }
  }

  /// Deletes the stored value, so that reads return the default. Throws like the method without `async`.
  public func reset() async throws(SecretError) {
    try await content.offPool { () throws(SecretError) in try self.reset() }
  }

  /// Removes the stored value with its earlier versions. Throws like the method without `async`.
  @discardableResult
  public func erase() async throws(SecretError) -> Bool {
    try await content.offPool { () throws(SecretError) in try self.erase() }
  }

  /// Runs `body` while no other task or process has the lease of this value, as ``SecurelyStoredValue`` does.
  public func withLease<R>(
    timeout: Duration = .seconds(30), isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> sending R
  ) async throws -> sending R {
    try await content.withLease(timeout: timeout, isolation: isolation, body)
  }

  /// Changes the value in one step, and returns the result of `change`, which may run several times. Throws like the
  /// method without `async`.
  public func update<R: Sendable>(_ change: @escaping @Sendable (inout Value) throws -> R) async throws -> R {
    try await content.offPool { try self.update(change) }
  }
}
