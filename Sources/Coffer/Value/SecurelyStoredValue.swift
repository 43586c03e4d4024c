public import CofferCore
internal import FoundationEssentials
public import Observation
internal import Synchronization

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
/// Use it as a property wrapper, or as an object: `let token = SecurelyStoredValue<String>(key: …)`. It is
/// thread-safe, and any actor may use it.
///
/// Each read asks the backend, and no plaintext is cached. A change that another process makes is therefore seen by
/// the next read. All objects with the same key and the same backend object see each other's writes.
///
/// The object notifies Observation after each change, so that an observer that reads the value at once gets the new
/// one. In an `@Observable` class, mark the property `@ObservationIgnored`. Changes between a read and the end of
/// the tracked closure are not reported; ``values`` reports every change.
///
/// `Value` need not be optional, because ``wrappedValue`` is `nil` if there is no value. An optional type is
/// flattened at run time: `SecurelyStoredValue<String?>` stores the same bytes as `SecurelyStoredValue<String>`, and
/// storing `nil` removes the value.
@propertyWrapper
public final class SecurelyStoredValue<Value: Codable & Sendable>: Sendable, Observable {
  private let hub: Result<ValueHub, SecretError>
  private let coder: any SecretCoder
  private let failure = Mutex<SecretError?>(nil)

  /// Creates the value for `key`. Reads nothing; the backend is chosen and opened at the first use.
  ///
  /// - Parameters:
  ///   - key: The secret's account: 1…1024 UTF-8 bytes without NUL.
  ///   - service: The secret's service: the application that it belongs to. The default is the name of the
  ///     executable, so that a renamed program does not find its secrets. Specify the service to avoid that.
  ///   - backend: The backend that stores the secret. The default is the backend that `CofferConfiguration`
  ///     chooses, one object for all values.
  ///   - coder: The conversion between values and bytes. All values with one key need the same coder.
  ///
  /// If `key` or `service` is invalid, each use throws `.invalidIdentifier`.
  public convenience init(
    key: String,
    service: String? = nil,
    backend: (any SecretBackend)? = nil,
    coder: any SecretCoder = StandardSecretCoder()
  ) {
    self.init(key: key, service: service, backend: backend, coder: coder, source: .process)
  }

  package init(
    key: String,
    service: String?,
    backend: (any SecretBackend)?,
    coder: any SecretCoder,
    source: BackendSource
  ) {
    self.coder = coder
    do throws(SecretError) {
      let identifier = try SecretIdentifier(service: service ?? Executable.name, account: key)
      hub = .success(HubRegistry.shared.hub(for: identifier, backend: backend, source: source))
    } catch {
      hub = .failure(error)
    }
  }

  /// The value, or `nil` if there is no value or if reading fails. After a failure, ``lastError`` is set.
  public var wrappedValue: Value? {
    do throws(SecretError) {
      return try get()
    } catch {
      return nil  // `get` has set `lastError`.
    }
  }

  /// The object itself, for calls such as `$token.set(…)`.
  public var projectedValue: SecurelyStoredValue<Value> { self }

  /// The error of the latest call on this object, or `nil` if it succeeded.
  public var lastError: SecretError? { failure.withLock { $0 } }

  /// Returns the value, or `nil` if there is none.
  ///
  /// Throws the backend's errors, such as `.locked` or `.unavailable`, and `.decodingFailed` if the stored bytes are
  /// not a `Value`.
  public func get() throws(SecretError) -> Value? {
    try recordingError { hub throws(SecretError) in
      guard let secret = try hub.read() else { return nil }
      return try decode(secret, hub.identifier)
    }
  }

  /// Stores the value in one durable step, and replaces any existing value, even one that does not decode. `nil`
  /// removes the value.
  ///
  /// Throws the backend's errors, and `.encodingFailed`. The existing value then stays.
  public func set(_ value: Value?) throws(SecretError) {
    try recordingError { hub throws(SecretError) in
      if let secret = try encode(value, hub.identifier) { try hub.store(secret) } else { try hub.remove() }
    }
  }

  /// Removes the value. Succeeds if there is none. Throws the backend's errors.
  public func remove() throws(SecretError) {
    try recordingError { hub throws(SecretError) in try hub.remove() }
  }

  /// A new stream of the current value and each change after it, made by this process or another one.
  ///
  /// Each stream yields every change. If the value cannot be read or decoded, the stream yields `nil` and
  /// ``lastError`` is set. Values that were not consumed yet are kept in guarded memory.
  public var values: AsyncStream<Value?> {
    switch hub {
    case .failure(let error):
      failure.withLock { $0 = error }
      return AsyncStream { continuation in
        continuation.yield(nil)
        continuation.finish()
      }
    case .success(let hub):
      let readings = hub.readings()
      // A reading is decoded when it is consumed. The closure keeps this object, and so the hub.
      return AsyncStream { () async -> Value?? in
        var iterator = readings.makeAsyncIterator()
        guard let reading = await iterator.next() else { return nil }
        return .some(self.value(of: reading, hub.identifier))
      }
    }
  }

  /// Replaces the value by the result of `change`, and returns `true`. Stores nothing and returns `false` if the
  /// result is `nil`.
  ///
  /// `change` runs without a lock. It runs again if another thread or process has changed the value since it was
  /// read. Throws `.conflict` after 1000 attempts.
  @discardableResult
  func update(_ change: (Value?) -> Value?) throws(SecretError) -> Bool {
    try recordingError { hub throws(SecretError) in
      for _ in 0..<1000 {
        let old = try hub.read()
        var value: Value?
        if let secret = old?.copy() { value = try decode(secret, hub.identifier) }
        guard let changed = change(value), let new = try encode(changed, hub.identifier) else { return false }
        if try hub.replace(old, with: new) { return true }
      }
      throw SecretError(
        .conflict,
        "Other threads or processes changed the secret during each of 1000 attempts.",
        advice: "Try again.",
        identifier: hub.identifier
      )
    }
  }

  // MARK: Coding

  private func value(of reading: ValueHub.Reading, _ identifier: SecretIdentifier) -> Value? {
    do throws(SecretError) {
      return try recordingError { _ throws(SecretError) in
        switch reading {
        case .absent: return nil
        case .failed(let error): throw error
        case .secret(let secret): return try decode(secret.bytes.copy(), identifier)
        }
      }
    } catch {
      return nil
    }
  }

  /// The bytes to store, or `nil` if there is no value.
  private func encode(_ value: Value?, _ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    guard let value else { return nil }
    do {
      return try coder.encodeFlattened(value)
    } catch {
      // Without the coder's error, which quotes the value.
      throw SecretError(
        .encodingFailed,
        "The value could not be encoded.",
        advice: "Check the encode(to:) of its type.",
        identifier: identifier
      )
    }
  }

  private func decode(_ secret: consuming SecretBytes, _ identifier: SecretIdentifier) throws(SecretError)
    -> Value?
  {
    let secret = secret
    do {
      return try coder.decodeFlattened(Value.self, from: secret)
    } catch {
      throw SecretError(
        .decodingFailed,
        "The stored value does not decode as \(Value.self).",
        advice: "Read it as the type that was stored, or store a new value.",
        identifier: identifier
      )
    }
  }

  /// Runs `body`, and sets ``lastError`` to its error or to `nil`.
  private func recordingError<R>(_ body: (ValueHub) throws(SecretError) -> R) throws(SecretError) -> R {
    do throws(SecretError) {
      let result = try body(hub.get())
      failure.withLock { $0 = nil }
      return result
    } catch {
      failure.withLock { $0 = error }
      throw error
    }
  }
}
