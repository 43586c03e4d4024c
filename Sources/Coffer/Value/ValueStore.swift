internal import CofferCore

/// Where the value of a ``ValueHub`` is kept. A member of the family of wrappers is a face of a hub over such a store.
protocol ValueStore: Sendable {
  associatedtype Value: Sendable
  /// What is remembered of a value to detect changes. It reveals nothing of the value.
  associatedtype Summary: Hashable & Sendable

  /// Returns the value, or `nil` if there is none. Without `mayPrompt`, a store that would need a prompt throws `.locked`.
  func load(mayPrompt: Bool) throws(SecretError) -> Value?

  /// Stores the value in one durable step, or removes it if it is `nil`.
  ///
  /// With an expectation, the comparison and the change are one step for the threads of this process, and for other
  /// processes if the backend has transactions.
  func save(_ value: Value?, over expectation: SaveExpectation<Summary>) throws(SecretError) -> SaveResult

  /// Returns a stream with an element after each change by this process or another one, or `nil` if the store cannot
  /// tell. Throws if the store cannot be reached yet.
  func changes() throws(SecretError) -> AsyncStream<Void>?

  func summary(of value: Value) -> Summary

  /// The size of the value in memory, in bytes.
  func size(of value: Value) -> Int
}

/// What the store must contain for a value to be saved.
enum SaveExpectation<Summary: Hashable & Sendable>: Sendable {
  case anything
  /// The value with that summary, or none if it is `nil`.
  case only(Summary?)
}

enum SaveResult: Sendable {
  case saved
  /// There was no value to remove.
  case wasAbsent
  /// The store contains something else than was expected. It was not changed.
  case isDifferent
}

/// One secret of a backend.
struct SecretValueStore: ValueStore {
  typealias Value = SharedSecret
  typealias Summary = SecretFingerprint

  let identifier: SecretIdentifier
  let source: BackendSource
  private let fingerprintKey = SharedSecret(.random(count: 32))

  init(_ identifier: SecretIdentifier, source: BackendSource) {
    self.identifier = identifier
    self.source = source
  }

  func load(mayPrompt: Bool) throws(SecretError) -> SharedSecret? {
    do throws(SecretError) {
      var backend = try source.resolve()
      if !mayPrompt, let observable = backend as? any ObservableSecretBackend {
        backend = observable.withoutPrompts
      }
      guard let secret = try backend.lookUp(identifier) else { return nil }
      return SharedSecret(secret)
    } catch {
      throw error.about(identifier)
    }
  }

  func save(
    _ value: SharedSecret?, over expectation: SaveExpectation<SecretFingerprint>
  ) throws(SecretError) -> SaveResult {
    do throws(SecretError) {
      let backend = try source.resolve()
      switch expectation {
      case .anything:
        if let value {
          try backend.store(value.bytes, for: identifier, metadata: nil)
          return .saved
        }
        return try backend.remove(identifier) ? .saved : .wasAbsent
      case .only(let expected):
        return try backend.withTransaction { transaction throws(SecretError) in
          var current: SecretFingerprint?
          if let secret = try transaction.lookUp(identifier) { current = summary(of: SharedSecret(secret)) }
          guard current == expected else { return .isDifferent }
          if let value {
            try transaction.store(value.bytes, for: identifier, metadata: nil)
            return .saved
          }
          return try transaction.remove(identifier) ? .saved : .wasAbsent
        }
      }
    } catch {
      throw error.about(identifier)
    }
  }

  func changes() throws(SecretError) -> AsyncStream<Void>? {
    let chosen: any SecretBackend
    do throws(SecretError) { chosen = try source.resolve() } catch { throw error.about(identifier) }
    guard let backend = chosen as? any ObservableSecretBackend else { return nil }
    let changes = backend.changes()
    let identifier = identifier
    return AsyncStream { () async -> Void? in
      for await change in changes where change.identifier == nil || change.identifier == identifier {
        return ()
      }
      return nil
    }
  }

  func summary(of value: SharedSecret) -> SecretFingerprint {
    value.bytes.fingerprint(under: fingerprintKey.bytes)
  }

  func size(of value: SharedSecret) -> Int { value.bytes.count }
}
