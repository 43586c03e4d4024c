public import CofferCore
public import FoundationEssentials
public import Observation

/// A value that is stored in a keyring, a vault or another backend.
///
/// ```swift
/// @SecurelyStoredValue<String>(key: "github-token", service: "com.example.app")
/// var token                                  // String?
///
/// try $token.set("ghp_…")
/// try $token.remove()
/// ```
///
/// Use it as a property wrapper, or as an object: `let token = SecurelyStoredValue<String>(key: …)`. It is thread-safe,
/// and any actor may use it. A `static` property and a property of a `Sendable` class must be such a constant, because
/// the storage that the compiler makes for a wrapper is a variable.
///
/// Each read asks the backend, and no plaintext is cached. A change that another process makes is therefore seen by the
/// next read. All objects with the same key and the same backend object see each other's writes.
///
/// The methods without `async` block the calling thread until the backend has answered. In `async` code, the overloads
/// with `await` are chosen, which wait on another thread.
///
/// The object notifies Observation after each change, so that an observer that reads the value at once gets the new
/// one. In an `@Observable` class, mark the property `@ObservationIgnored`. Changes between a read and the end of the
/// tracked closure are not reported; ``values`` reports every change of values with this key. The backend is watched
/// from the first read that Observation records, or while a stream of ``values`` exists.
///
/// `Value` need not be optional, because ``wrappedValue`` is `nil` if there is no value. An optional type is flattened
/// at run time: `SecurelyStoredValue<String?>` stores the same bytes as `SecurelyStoredValue<String>`, and storing
/// `nil` removes the value.
@propertyWrapper
public final class SecurelyStoredValue<Value: Sendable>: Sendable, Observable, EditableValue {
  let content: TypedValue<Value>

  /// Creates the value for `key`. Reads nothing; the backend is chosen and opened at the first use.
  ///
  /// - Parameters:
  ///   - key: The secret's account: 1…1024 UTF-8 bytes without NUL.
  ///   - scope: The service and the backend, for several values. `service` and `backend` go before those of the scope.
  ///   - service: The secret's service: the application that it belongs to. The default is the name of the
  ///     executable: a program that is renamed then does not find its secrets. Specify the service to avoid that.
  ///   - backend: The backend that stores the secret. The default is ``DefaultBackend``, one object for all values.
  ///   - coder: The conversion between values and bytes. All values with one key need the same coder.
  ///   - label: A name for people, which is stored with the value. A label that the secret already has stays, because a
  ///     person may have changed it.
  ///   - history: What happens to earlier values in a backend that keeps them. By default, a value that is replaced or
  ///     removed cannot be restored. Keep the history of values that a person stores.
  ///
  /// If `key` or `service` is invalid, each use throws `.invalidIdentifier`.
  public init(
    key: String, in scope: SecretScope? = nil, service: String? = nil, backend: (any SecretBackend)? = nil,
    coder: any SecretCoder = StandardSecretCoder(), label: String? = nil, history: History = .none
  ) where Value: Codable {
    content = TypedValue(key, SecretScope(scope, service, backend), .init(coder), label, history)
  }

  /// Creates the value for `key` as the bytes of the secret, which stay in guarded memory. The parameters are those of
  /// ``init(key:in:service:backend:coder:label:history:)``.
  public init(
    key: String, in scope: SecretScope? = nil, service: String? = nil, backend: (any SecretBackend)? = nil,
    label: String? = nil, history: History = .none
  ) where Value == SecretBytes {
    content = TypedValue(
      key, SecretScope(scope, service, backend), .init(encode: { $0 }, decode: { $0?.secret }), label, history)
  }

  /// Unavailable, because `Value` is neither `Codable` nor `SecretBytes`.
  @available(*, unavailable, message: "The value must be Codable, or a SecretBytes.")
  public convenience init(key: String, in scope: Any? = nil, service: Any? = nil, backend: Any? = nil) { fatalError() }

  package init(key: String, service: String?, source: BackendSource) where Value: Codable {
    content = TypedValue(key, SecretScope(nil, service, nil), .init(StandardSecretCoder()), nil, .none, source: source)
  }

  /// The value, or `nil` if there is no value or if reading fails. After a failure, ``lastError`` is set.
  ///
  /// In a debug build, a read inside a transaction of the value's own backend stops the program.
  public var wrappedValue: Value? {
    get { content.getOrNil() }
    @available(*, unavailable, message: "Use $NAME.set(_:), which can throw.")
    set { fatalError() }
  }

  /// The object itself, for calls such as `$token.set(…)`.
  public var projectedValue: SecurelyStoredValue<Value> { self }

  /// The error of the call on this object that ended last, in any thread, or `nil` if it succeeded. It is meant for
  /// display.
  ///
  /// If several tasks use the object, another call may have ended since yours. Use `get()` or ``result`` to have the
  /// value and its error together.
  public var lastError: SecretError? { content.lastError }

  /// The value, `nil` if there is none, or the error of this read.
  public var result: Result<Value?, SecretError> { Result { () throws(SecretError) in try get() } }

  /// Returns the value, or `nil` if there is none.
  ///
  /// Throws the backend's errors, such as `.locked` or `.unavailable`, and `.decodingFailed` if the stored bytes are
  /// not a `Value`.
  public func get() throws(SecretError) -> Value? { try content.get() }

  /// Returns the value. Throws `.missing` if there is none, and the errors of `get()`.
  public func required() throws(SecretError) -> Value {
    guard let value = try content.get() else { throw try content.missing() }
    return value
  }

  /// Stores the value in one durable step, and replaces any existing value, even one that does not decode. `nil`
  /// removes the value. `expires` is the time at which the value expires. The old value's expiry is dropped.
  ///
  /// Throws the backend's errors, and `.encodingFailed`. The existing value then stays.
  public func set(_ value: Value?, expires: Date? = nil) throws(SecretError) {
    try content.set(value, expires: expires)
  }

  /// Stores `value` if the current value equals `expected`, and returns whether it did. `nil` stands for no value.
  ///
  /// The comparison and the change are one step for the threads of this process, and for other processes if the backend
  /// has transactions. Throws the errors of `get()` and of `set(_:)`, and `.conflict` after 1000 attempts.
  public func set(_ value: Value?, ifCurrentIs expected: Value?) throws(SecretError) -> Bool
  where Value: Equatable {
    try content.set(value, ifCurrentIs: { $0 == expected })
  }

  /// Removes the value. Returns `false` if there is none. Throws the backend's errors.
  @discardableResult
  public func remove() throws(SecretError) -> Bool { try content.set(nil) }

  /// Removes the value with its earlier versions, which a vault erases from its file at once. Returns `false` if there
  /// is no version. Copies and snapshots of the file may still contain the values. Throws the backend's errors.
  @discardableResult
  public func erase() throws(SecretError) -> Bool { try content.erase() }

  /// Returns the identifier and the metadata of the value, such as its expiry, or `nil` if there is none. Throws the
  /// backend's errors.
  public func item() throws(SecretError) -> SecretItem? {
    let (backend, identifier) = try content.place()
    return try backend.item(identifier)
  }

  /// Changes the value in one step, and returns the result of `change`.
  ///
  /// ```swift
  /// let count = try $counter.update { value in
  ///   value = (value ?? 0) + 1
  ///   return value
  /// }
  /// ```
  ///
  /// `change` gets the value, or `nil` if there is none, and may set it to `nil` to remove it. It runs without a lock,
  /// and runs again if another thread or process has changed the value in that time. If it throws, or leaves the value
  /// as it was, nothing is stored. Throws the errors of `change`, of `get()` and of `set(_:)`, and `.conflict` after
  /// 1000 attempts. The change is one step for other processes if the backend has transactions.
  public func update<R>(_ change: (inout Value?) throws -> R) throws -> R {
    try content.edit(change).get()
  }

  /// Changes the value. The methods of ``EditableValue`` call this. Throws the errors of `get()` and of `set(_:)`, and
  /// `.conflict` after 1000 attempts.
  public func edit<R>(_ change: (inout Value?) -> R) throws(SecretError) -> R {
    try content.edit { (value: inout Value?) throws(Never) -> R in change(&value) }.get()
  }

  /// A new stream of the current value and each change after it, made by this process or another one.
  ///
  /// The call reads the current value, and blocks like `get()`. Each stream yields every change that values with this
  /// key and this backend object make. Other changes, by calls on the backend, through other backend objects or by
  /// other processes, are seen when the backend reports them, so several can be reported as one. A change in a locked
  /// keyring is yielded when the keyring is unlocked; the stream never causes a prompt for its password. If the value
  /// cannot be read or decoded, the stream yields `nil`, as for a missing value: ``results`` tells them apart. If no
  /// backend can be chosen yet, the stream yields the value as soon as one can be.
  ///
  /// Values that were not consumed yet are kept in guarded memory: at most 4096 values, and at most 1 MiB together, but
  /// always the newest. Older ones are dropped.
  public var values: AsyncStream<Value?> { content.values { $0 } }

  /// The same as ``values``, with the error of a value that cannot be read or decoded. A missing value is a success.
  public var results: AsyncStream<Result<Value?, SecretError>> { content.results { $0 } }

  /// The value as a pair of closures, for code that reads and writes a value without knowing where it is.
  public var binding: StoredBinding<Value?> {
    StoredBinding(
      getter: { () throws(SecretError) in try self.get() },
      setter: { value throws(SecretError) in try self.set(value) },
      editor: { change throws(SecretError) in try self.edit(change) })
  }
}
