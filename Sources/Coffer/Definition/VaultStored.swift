public import CofferCore
public import Observation

/// A value with a definition, stored in a keyring, a vault or another backend. See ``VaultStorable``.
///
/// ```swift
/// @VaultStored(UserSettingsStorage.self) var settings
///
/// try $settings.set(\.theme, to: "dark")
/// try $settings.reset()                      // the default again
/// ```
///
/// It behaves as ``StoredValue`` does, with these differences:
///
/// - A stored value of an earlier version is converted by the definition's steps when it is read, and its current form is
///   stored in one step, which also changes the version. A change by another thread or process in the meantime is kept, and
///   the read begins again; for other processes if the backend has transactions. If the value cannot be stored, for
///   example on a read-only disk, the read returns it nevertheless, ``lastError`` is set, and the next read tries again.
/// - A read throws `.migrationFailed` if a step fails, `.unsupportedVersion` if the value has a version that the program does
///   not read, and `.invalidMigration` if the definition's steps are not one chain. The stored value is unchanged.
/// - A value that equals the stored one is not stored.
/// - With a ``VaultStorable/saveDelay``, a change is stored later.
@propertyWrapper
public final class VaultStored<Value: Codable & Equatable & Sendable>: Sendable, Observable, EditableValue {
  let content: StoredContent<Value>
  /// The secret's account.
  public let key: String
  /// The value that a read returns if nothing is stored.
  public let defaultValue: Value

  /// Creates the value of a definition. Reads nothing; the backend is chosen and opened at the first use.
  public init<Definition: VaultStorable>(_ definition: Definition.Type) where Definition.Value == Value {
    key = definition.key
    defaultValue = definition.defaultValue
    let scope = definition.storage
    content = StoredContent(
      key: key, service: scope.service, source: scope.backend.map { BackendSource(given: $0) },
      coder: StandardSecretCoder(encoder: definition.encoder, decoder: definition.decoder),
      versions: DataMigrator(definition.configure), delay: definition.saveDelay)
  }

  /// The value, or the default if nothing is stored or if reading fails. After a failure, ``lastError`` is set.
  public var wrappedValue: Value { content.getOrNil() ?? defaultValue }

  /// The object itself, for calls such as `$settings.set(…)`.
  public var projectedValue: VaultStored<Value> { self }

  /// The error of the call on this object that ended last, in any thread, or else of the last attempt to store a delayed
  /// change. `nil` if they succeeded.
  public var lastError: SecretError? { content.lastError }

  /// Returns the value, or the default if nothing is stored. Throws the backend's errors, `.decodingFailed`,
  /// `.migrationFailed`, `.unsupportedVersion` and `.invalidMigration`.
  public func get() throws(SecretError) -> Value { try content.get() ?? defaultValue }

  /// Stores the value in the current version, unless it is stored already. Replaces any existing value, also one that
  /// cannot be read. Throws the backend's errors, `.encodingFailed` and `.invalidMigration`.
  public func set(_ value: Value) throws(SecretError) { try content.set(value, unless: { $0 == value }) }

  /// Deletes the stored value, so that reads return the default. Succeeds if there is none.
  public func reset() throws(SecretError) { try content.set(nil) }

  /// Stores a change that waits for the definition's ``VaultStorable/saveDelay``. Does nothing if none does. Throws the
  /// backend's errors; the change then waits for another attempt.
  public func flush() throws(SecretError) { try content.flush() }

  /// Changes the value in one step, and returns the result of `change`, as `update` of ``SecurelyStoredValue`` does.
  /// If nothing is stored, `change` gets the default.
  @discardableResult
  public func update<R>(_ change: (inout Value) throws -> R) throws -> R {
    try content.update(fallback: defaultValue, change)
  }

  /// Changes the value, for the methods of every ``EditableValue``. `change` gets the default if nothing is stored.
  @discardableResult
  public func edit<R>(_ change: (inout Value?) -> R) throws(SecretError) -> R {
    try content.edit(fallback: defaultValue) { (value: inout Value?) throws(Never) -> R in change(&value) }
      .get()
  }

  /// A new stream of the current value and each change after it, by the rules of ``SecurelyStoredValue/values``. The
  /// default stands for an absent value, and for one that cannot be read.
  public var values: AsyncStream<Value> {
    let fallback = defaultValue
    return content.values { $0 ?? fallback }
  }

  /// The value as a pair of closures, for code that reads and writes a value without knowing where it is.
  public var binding: StoredBinding<Value> {
    StoredBinding(get: { () throws(SecretError) in try self.get() }) { value throws(SecretError) in
      try self.set(value)
    }
  }
}

// MARK: Async

extension VaultStored {
  /// Returns the value, or the default if nothing is stored.
  public func get() async throws(SecretError) -> Value {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.get() }
  }

  /// Stores the value in the current version, unless it is stored already.
  public func set(_ value: Value) async throws(SecretError) {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.set(value) }
  }

  /// Deletes the stored value, so that reads return the default.
  public func reset() async throws(SecretError) {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.reset() }
  }

  /// Stores a change that waits for the definition's ``VaultStorable/saveDelay``.
  public func flush() async throws(SecretError) {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.flush() }
  }

  /// Changes the value in one step, and returns the result of `change`, which may run several times.
  @discardableResult
  public func update<R: Sendable>(
    _ change: @escaping @Sendable (inout Value) throws -> R
  ) async throws -> R {
    try await DefaultBackend.offPoolResult { Result { try self.update(change) } }.get()
  }
}
