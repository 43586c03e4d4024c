public import CofferCore
internal import FoundationEssentials
public import Observation
internal import Synchronization

/// A value that is kept in the keyring or in a vault, and read from there each time.
///
/// ```swift
/// @SecurelyStoredValue<String>(key: "github-token", service: "com.example.app")
/// var token                                  // String?
///
/// try $token.set("ghp_…")
/// try $token.remove()
/// ```
///
/// It is a property wrapper, and as well an object of its own: `let token = SecurelyStoredValue<String>(key: …)`.
/// In an `@Observable` class mark the property `@ObservationIgnored`: the value tells Observation by itself,
/// after the change, so that an observer that reads at once reads the new value. Observation hears of changes
/// from the end of the tracked closure on; ``values`` misses none.
///
/// No plaintext is kept: each read asks the backend, so what another process writes is seen at once. All
/// values with one key in one backend (the same object) see each other's writes, and tell of them. A type of
/// its own for an absent value is not needed: `Value` is never optional. Thread-safe; any actor may use it.
@propertyWrapper
public final class SecurelyStoredValue<Value: Codable & Sendable>: Sendable, Observable {
  private let hub: Result<SecretHub, SecretError>
  private let coder: any SecretCoder
  private let failure = Mutex<SecretError?>(nil)

  /// The value for `key`, in the service, of the backend.
  ///
  /// - Parameters:
  ///   - key: The secret's account: 1…1024 UTF-8 bytes without NUL.
  ///   - service: The application that the secret belongs to. Where it is `nil`: the name of the program's
  ///     executable. Give it, so that the secret is found again when the executable is renamed.
  ///   - backend: Where the secret is kept. Where it is `nil`: what ``CofferConfiguration`` chooses, at the
  ///     first use. One object is shared by all values that leave it out.
  ///   - coder: How a value becomes bytes. Give the same to all values with one key.
  ///
  /// Never fails: what is wrong with the arguments is thrown by the first use, as `.invalidIdentifier`.
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

  /// The value, or `nil` where there is none and where it cannot be had: ``lastError`` tells them apart.
  public var wrappedValue: Value? {
    do throws(SecretError) {
      return try get()
    } catch {
      return nil  // Not swallowed: `get` has put it into `lastError`.
    }
  }

  /// The value's own object, for `$token.set(…)`.
  public var projectedValue: SecurelyStoredValue<Value> { self }

  /// Why the latest call on this object failed, or `nil` where it did not.
  public var lastError: SecretError? { failure.withLock { $0 } }

  /// The value, or `nil` where there is none. Everything else throws: locked, unreachable, `.decodingFailed`.
  public func get() throws(SecretError) -> Value? {
    try noting { hub throws(SecretError) in
      guard let secret = try hub.read() else { return nil }
      return try decode(secret, hub.identifier)
    }
  }

  /// Stores the value in place of the one that was there, whatever that was, in one durable step; `nil`
  /// removes it. Where it throws, the old value is still there.
  public func set(_ value: Value?) throws(SecretError) {
    try noting { hub throws(SecretError) in
      if let secret = try encode(value, hub.identifier) { try hub.store(secret) } else { try hub.remove() }
    }
  }

  /// Removes the value. That there is none is no error.
  public func remove() throws(SecretError) {
    try noting { hub throws(SecretError) in try hub.remove() }
  }

  /// The current value, then each change that is made to it, here or in another process.
  ///
  /// Each stream gets every change. One that cannot be read or decoded is `nil`, with ``lastError`` set. What
  /// a slow reader has not read yet is kept for it in guarded memory.
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
      // Decoded when it is read, and not before. The closure keeps the value, and so its hub, in being.
      return AsyncStream { () async -> Value?? in
        var iterator = readings.makeAsyncIterator()
        guard let reading = await iterator.next() else { return nil }
        return .some(self.value(of: reading, hub.identifier))
      }
    }
  }

  /// Stores what `change` makes of the value, or nothing where it gives `nil`, and returns whether it did.
  ///
  /// `change` runs without a lock, and again if somebody else changed the value meanwhile.
  @discardableResult
  func update(_ change: (Value?) -> Value?) throws(SecretError) -> Bool {
    try noting { hub throws(SecretError) in
      for _ in 0..<1000 {
        let old = try hub.read()
        var value: Value?
        if let secret = old?.copy() { value = try decode(secret, hub.identifier) }
        guard let changed = change(value), let new = try encode(changed, hub.identifier) else { return false }
        if try hub.replace(old, with: new) { return true }
      }
      throw SecretError(
        .conflict,
        "The secret was changed by others each time that this program was about to change it.",
        advice: "Try again.",
        identifier: hub.identifier
      )
    }
  }

  // MARK: Coding

  private func value(of reading: SecretHub.Reading, _ identifier: SecretIdentifier) -> Value? {
    do throws(SecretError) {
      return try noting { _ throws(SecretError) in
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

  /// The bytes to store, or `nil` where the value is none.
  private func encode(_ value: Value?, _ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    // A value of an optional type, in generic code, may be a none inside a some.
    guard let value, !isNone(value) else { return nil }
    do {
      return try coder.encode(value)
    } catch {
      // Not the error itself: it quotes the value.
      throw SecretError(
        .encodingFailed,
        "The value could not be encoded.",
        advice: "Check what its type's encode(to:) does.",
        identifier: identifier
      )
    }
  }

  private func decode(_ secret: consuming SecretBytes, _ identifier: SecretIdentifier) throws(SecretError)
    -> Value?
  {
    let secret = secret
    do {
      let value = try coder.decode(Value.self, from: secret)
      return isNone(value) ? nil : value
    } catch {
      throw SecretError(
        .decodingFailed,
        "What is stored does not decode as the type that was asked for.",
        advice: "Ask for the type it was stored as, or set a new value.",
        identifier: identifier
      )
    }
  }

  private func isNone(_ value: Value) -> Bool {
    guard let optional = value as? any OptionalValue else { return false }
    return optional.isNone
  }

  /// Runs `body` and keeps its failure, or that there was none, for ``lastError``.
  private func noting<R>(_ body: (SecretHub) throws(SecretError) -> R) throws(SecretError) -> R {
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

private protocol OptionalValue {
  var isNone: Bool { get }
}

extension Optional: OptionalValue {
  fileprivate var isNone: Bool {
    switch self {
    case .none: true
    case .some(let wrapped): (wrapped as? any OptionalValue)?.isNone ?? false
    }
  }
}
