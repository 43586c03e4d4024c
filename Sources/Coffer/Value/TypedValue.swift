internal import CofferCore
internal import FoundationEssentials
internal import Synchronization

/// The stored value behind each property wrapper: one secret, decoded and encoded. Thread-safe.
final class TypedValue<Value: Sendable>: Sendable {
  /// How a value becomes a secret and back. `nil` is an absent secret.
  struct Coding: Sendable {
    let encode: @Sendable (Value) throws -> SecretBytes?
    let decode: @Sendable (EncodedValue?) throws(SecretError) -> Value?
  }
  /// What a ``VaultStorable`` adds to a value.
  struct Definition: Sendable {
    /// The current version. Throws `.invalidMigration`.
    let version: @Sendable () throws(SecretError) -> Int
    let isSame: @Sendable (Value, Value) -> Bool
  }

  private let identifier: Result<SecretIdentifier, SecretError>
  private let coding: Coding
  private let label: String?
  private let definition: Definition?
  private let form: ValueHub.Form
  /// The source of a value with a backend of its own. `nil`: the default backend, asked for at each use.
  private let fixedSource: BackendSource?
  private let failure = Mutex<SecretError?>(nil)
  private let latest = Mutex<(source: BackendSource, hub: ValueHub)?>(nil)

  init(
    _ key: String, _ scope: SecretScope, _ coding: Coding, _ label: String?, _ history: History,
    definition: Definition? = nil, source: BackendSource? = nil
  ) {
    (self.coding, self.label, self.definition) = (coding, label, definition)
    form = ValueHub.Form(hasVersions: definition != nil, history: history)
    fixedSource = source ?? scope.backend.map { BackendSource(given: $0) }
    identifier = Result { () throws(SecretError) in
      try SecretIdentifier(service: scope.service, account: key)
    }
  }

  var lastError: SecretError? { failure.withLock { $0 } }

  private func hub() throws(SecretError) -> ValueHub {
    let identifier = try identifier.get()
    if fixedSource == nil, let source = DefaultBackend.ofTask {
      let hub = HubRegistry.shared.hub(for: identifier, source: source, form: form)
      _ = source.keep(hub)
      return hub
    }
    let source = fixedSource ?? DefaultBackend.source
    return latest.withLock { latest in
      if let latest, latest.source === source { return latest.hub }
      let hub = HubRegistry.shared.hub(for: identifier, source: source, form: form)
      latest = (source, hub)
      return hub
    }
  }

  /// Runs `body` on a thread for blocking calls of the value's backend.
  func offPool<R: Sendable, E: Error>(_ body: @escaping @Sendable () throws(E) -> R) async throws(E) -> R {
    try await DefaultBackend.offPool(fixedSource, body)
  }

  // MARK: Reading

  func get() throws(SecretError) -> Value? {
    let current = try recordingError { hub throws(SecretError) in try readCurrent(hub) }
    if let error = current.writeFailure { failure.withLock { $0 = error } }
    return current.value
  }

  /// The write failure is the error if the current form of a value of an earlier version could not be stored.
  private typealias Current = (stored: EncodedValue?, value: Value?, writeFailure: SecretError?)

  /// Reads the value. Stores the current form of a value of an earlier version, unless the store cannot be written.
  private func readCurrent(_ hub: ValueHub) throws(SecretError) -> Current {
    for _ in 0..<1000 {
      let stored = try hub.read()
      let value = try coding.decode(stored)
      guard let stored, let definition, try stored.version != definition.version() else { return (stored, value, nil) }
      if let refusal = hub.state.withLock({ $0.refusal }) { return (stored, value, refusal) }
      let migrated = try encode(value)
      do throws(SecretError) {
        if try hub.replace(stored, with: migrated) { return (migrated, value, nil) }
      } catch {
        if error.code == .unsupported { hub.state.withLock { $0.refusal = error } }
        return (stored, value, error)
      }
    }
    throw Self.tooManyConflicts
  }

  /// The value for a property. `nil` after every failure.
  func getOrNil() -> Value? {
    do throws(SecretError) {
      return try get()
    } catch {
      // The value exists: a program that takes `nil` for “no value” would overwrite it. `lastError` is set in release
      // builds.
      assert(
        error.code != .conflict,
        "A stored property was read inside a transaction of its own backend. Use the transaction.")
      return nil
    }
  }

  /// What `results` yields, with `nil` in place of an error.
  func values<Element: Sendable>(_ transform: @escaping @Sendable (Value?) -> Element) -> AsyncStream<Element> {
    results { result in if case .success(let value) = result { transform(value) } else { transform(nil) } }
  }

  func results<Element: Sendable>(
    _ transform: @escaping @Sendable (Result<Value?, SecretError>) -> Element
  ) -> AsyncStream<Element> {
    let hub: ValueHub
    do throws(SecretError) { hub = try self.hub() } catch {
      failure.withLock { $0 = error }
      return AsyncStream { continuation in
        continuation.yield(transform(.failure(error)))
        continuation.finish()
      }
    }
    if definition != nil {
      do throws(SecretError) { _ = try readCurrent(hub) } catch {
        // The stream begins with the same failure.
      }
    }
    let readings = hub.readings()
    // A reading is decoded when it is consumed. The closure keeps this object and the hub.
    return AsyncStream { () async -> Element? in
      var iterator = readings.makeAsyncIterator()
      guard let reading = await iterator.next() else { return nil }
      return withExtendedLifetime(hub) {
        transform(
          Result { () throws(SecretError) in
            try self.recordingError { _ throws(SecretError) in try self.coding.decode(reading.get()) }
          })
      }
    }
  }

  // MARK: Writing

  /// Returns `false` if there was no value to remove.
  @discardableResult
  func set(_ value: Value?, expires: Date? = nil) throws(SecretError) -> Bool {
    try recordingError { hub throws(SecretError) in
      let new = try encode(value, expires: expires)
      if expires == nil && isStored(value, hub) { return true }
      return try hub.save(new) == .saved
    }
  }

  func erase() throws(SecretError) -> Bool {
    try recordingError { hub throws(SecretError) in try hub.erase() }
  }

  /// Whether a value with a definition is stored already, in the current version.
  private func isStored(_ value: Value?, _ hub: ValueHub) -> Bool {
    guard let definition, let value, case .success(let stored?) = hub.readNow() else { return false }
    do throws(SecretError) {
      guard try stored.version == definition.version() else { return false }
      return try coding.decode(stored).map { definition.isSame($0, value) } ?? false
    } catch {
      // A stored value that does not decode is replaced.
      return false
    }
  }

  /// Changes the value, or `fallback` if there is none, in one step.
  func update<R, E: Error>(
    fallback: Value, _ change: (inout Value) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    try edit(fallback: fallback) { (stored: inout Value?) throws(E) -> R in
      var value = stored ?? fallback
      defer { stored = value }
      return try change(&value)
    }
  }

  /// Changes the value by `change` and returns its result. `change` runs without a lock, and again if another thread or
  /// process has changed the value in that time. It gets `fallback` if there is no value. Stores nothing if the encoded
  /// value stays the same, or if `change` throws.
  func edit<R, E: Error>(
    fallback: Value? = nil, _ change: (inout Value?) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    try recordingError { hub throws(SecretError) in
      for _ in 0..<1000 {
        let current = try readCurrent(hub)
        let old = current.stored
        var value = current.value ?? fallback
        let before = try encode(value)
        let result = Result { () throws(E) in try change(&value) }
        guard case .success = result else { return result }
        let new = try encode(value)
        if isSame(new, before) || isSame(new, old) { return result }
        if try hub.replace(old, with: new) { return result }
      }
      throw Self.tooManyConflicts
    }
  }

  /// Stores `new` if the value is `expected`, and returns whether it was.
  func set(_ new: Value?, ifCurrentIs expected: (Value?) -> Bool) throws(SecretError) -> Bool {
    try recordingError { hub throws(SecretError) in
      for _ in 0..<1000 {
        let old = try hub.read()
        guard expected(try coding.decode(old)) else { return false }
        if try hub.replace(old, with: encode(new)) { return true }
      }
      throw Self.tooManyConflicts
    }
  }

  private static var tooManyConflicts: SecretError {
    SecretError(
      .conflict, "Other threads or processes changed the secret during each of 1000 attempts.",
      advice: "Try again.")
  }

  private func isSame(_ one: EncodedValue?, _ other: EncodedValue?) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    return one.version == other.version && one.secret.isEqual(to: other.secret)
  }

  // MARK: Leases

  /// Stores the value, and tries again until `deadline`. Throws the error of a value that cannot be encoded, and else
  /// ``UnstoredValue``.
  func keepStoring(_ value: Value, until deadline: ContinuousClock.Instant) throws {
    let bytes = try encode(value)?.secret
    var pause = Duration.milliseconds(20)
    while true {
      do throws(SecretError) {
        try set(value)
        return
      } catch {
        let left = deadline - .now
        let isFinal = [.tooLarge, .conflict, .unsupported, .invalidMetadata].contains(error.code)
        guard let bytes else { throw error }
        if isFinal || left <= .zero { throw UnstoredValue(value: bytes, error: error) }
        threadSleep(min(pause, left))
        pause = min(pause * 2, .seconds(1))
      }
    }
  }

  func withLease<R>(
    timeout: Duration, isolation: isolated (any Actor)?, _ body: () async throws -> sending R
  ) async throws -> sending R {
    let lease = try await offPool { () throws(SecretError) in try self.place() }
    return try await lease.backend.withLease(
      of: lease.identifier, timeout: timeout, isolation: isolation
    ) { _ in try await body() }
  }

  func place() throws(SecretError) -> (backend: any SecretBackend, identifier: SecretIdentifier) {
    let hub = try hub()
    return (try hub.source.resolve(), hub.identifier)
  }

  func missing() throws(SecretError) -> SecretError {
    let identifier = try identifier.get()
    return SecretError(
      .missing, "There is no value for \(identifier), and the program needs one.",
      advice: "Store it first, for example with `secret -s \(identifier.service) set \(identifier.account)`.",
      identifier: identifier)
  }

  // MARK: Coding

  /// Returns what to store, or `nil` if there is no value.
  private func encode(_ value: Value?, expires: Date? = nil) throws(SecretError) -> EncodedValue? {
    let version = try definition?.version()
    guard let value else { return nil }
    do {
      guard let secret = try coding.encode(value) else { return nil }
      return EncodedValue(secret: secret, version: version, label: label, expires: expires)
    } catch {
      // The coder's error is dropped, because it quotes the value.
      throw SecretError(
        .encodingFailed, "The value could not be encoded.", advice: "Check the encode(to:) of its type.")
    }
  }

  /// Runs `body`. Sets ``lastError`` to its error, with the identifier of the secret, or to `nil`.
  private func recordingError<R>(_ body: (ValueHub) throws(SecretError) -> R) throws(SecretError) -> R {
    do throws(SecretError) {
      let hub = try hub()
      let result = try body(hub)
      failure.withLock { $0 = nil }
      return result
    } catch {
      let named = if case .success(let identifier) = identifier { error.about(identifier) } else { error }
      failure.withLock { $0 = named }
      throw named
    }
  }
}

extension TypedValue.Coding where Value: Codable {
  /// Codes with `coder`, and converts values of earlier versions.
  init(_ coder: any SecretCoder, _ versions: DataMigrator<Value> = DataMigrator { _ in }) {
    encode = { value in try coder.encodeFlattened(value) }
    decode = { stored throws(SecretError) in try versions.value(of: stored, coder) }
  }
}
