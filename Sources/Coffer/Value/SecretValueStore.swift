internal import CofferCore

/// The bytes of a secret, and the version of their form if the value has versions.
struct StoredSecret: Sendable {
  let secret: SharedSecret
  /// `nil` for a value without versions.
  let version: Int?

  func isSame(as other: StoredSecret) -> Bool {
    version == other.version && secret.bytes.isEqual(to: other.secret.bytes)
  }
}

/// What is kept of a secret besides its bytes. Values of different forms have different hubs.
struct SecretForm: Hashable, Sendable {
  /// Whether the version is kept in the metadata.
  var hasVersions = false
  /// How long a change waits before it is stored. `nil`: not at all.
  var delay: Duration?
}

/// One secret of a backend.
struct SecretValueStore: ValueStore {
  typealias Value = StoredSecret

  struct Summary: Hashable, Sendable {
    let fingerprint: SecretFingerprint
    let version: Int?
  }

  /// The attribute of the secret's metadata that is the version of the bytes, as a decimal number.
  static let versionAttribute = "coffer.version"

  let identifier: SecretIdentifier
  let source: BackendSource
  let form: SecretForm
  /// The change that is not stored yet, for a form with a delay.
  let delayed: DelayedSave?
  private let fingerprintKey = SharedSecret(.random(count: 32))

  init(_ identifier: SecretIdentifier, source: BackendSource, form: SecretForm = SecretForm()) {
    self.identifier = identifier
    self.source = source
    self.form = form
    delayed = form.delay.map { DelayedSave(delay: $0) }
  }

  func load(mayPrompt: Bool) throws(SecretError) -> StoredSecret? {
    if let waiting = delayed?.waiting { return waiting.value }
    return try loadNow(mayPrompt: mayPrompt)
  }

  private func loadNow(mayPrompt: Bool) throws(SecretError) -> StoredSecret? {
    do throws(SecretError) {
      var backend = try source.resolve()
      if !mayPrompt { backend = backend.promptless }
      if form.hasVersions { return try loadWithVersion(backend) }
      guard let secret = try backend.lookUp(identifier) else { return nil }
      return StoredSecret(secret: SharedSecret(secret), version: nil)
    } catch {
      throw error.about(identifier)
    }
  }

  /// Reads the bytes between two reads of the version, which must be the same: a writer may change both.
  private func loadWithVersion(_ backend: any SecretBackend) throws(SecretError) -> StoredSecret? {
    var before = try version(of: backend.item(identifier))
    for _ in 0..<1000 {
      guard let secret = try backend.lookUp(identifier) else { return nil }
      let after = try version(of: backend.item(identifier))
      if let after, after == before { return StoredSecret(secret: SharedSecret(secret), version: after) }
      before = after
    }
    throw SecretError(
      .conflict, "Other programs changed the version of the secret during each of 1000 reads.",
      advice: "Try again.")
  }

  /// The version in the metadata of a secret: 1 if it was stored without one. `nil` if there is no secret.
  private func version(of item: SecretItem?) throws(SecretError) -> Int? {
    guard let item else { return nil }
    guard let text = item.metadata.attributes[Self.versionAttribute] else { return 1 }
    guard let version = Int(text), version > 0 else {
      throw SecretError(
        .unsupportedVersion, "The attribute \(Self.versionAttribute) of the secret is not a version.",
        advice: "Store a new value, or restore an earlier version of the secret.")
    }
    return version
  }

  func save(
    _ value: StoredSecret?, over expectation: SaveExpectation<Summary>
  ) throws(SecretError) -> SaveResult {
    guard let delayed, !isMigration(to: value, over: expectation) else {
      return try saveNow(value, over: expectation)
    }
    var current: StoredSecret?
    do throws(SecretError) {
      // A store that cannot be reached is reported now, and not only when the change is stored.
      current = try load(mayPrompt: true)
    } catch {
      guard case .anything = expectation, error.code == .unsupportedVersion else { throw error }
    }
    if case .only(let expected) = expectation, current.map(summary) != expected { return .isDifferent }
    if value == nil && current == nil { return .wasAbsent }
    delayed.put(value)
    return .saved
  }

  /// Whether the change replaces a value of an earlier version, which is compared with the stored one and therefore does
  /// not wait.
  private func isMigration(to value: StoredSecret?, over expectation: SaveExpectation<Summary>) -> Bool {
    guard case .only(let expected?) = expectation else { return false }
    return expected.version != value?.version && delayed?.waiting == nil
  }

  /// Stores the change that waits, if there is one.
  func flush() throws(SecretError) {
    try delayed?.flush { value throws(SecretError) in _ = try saveNow(value, over: .anything) }
  }

  private func saveNow(
    _ value: StoredSecret?, over expectation: SaveExpectation<Summary>
  ) throws(SecretError) -> SaveResult {
    do throws(SecretError) {
      let backend = try source.resolve()
      if case .anything = expectation {
        guard let value else { return try backend.remove(identifier) ? .saved : .wasAbsent }
        if value.version == nil {
          try backend.store(value.secret.bytes, for: identifier, metadata: nil)
          return .saved
        }
      }
      return try backend.withTransaction { transaction throws(SecretError) in
        if case .only(let expected) = expectation {
          guard try current(transaction) == expected else { return .isDifferent }
        }
        if let value {
          try transaction.store(
            value.secret.bytes, for: identifier, metadata: metadata(for: value, transaction))
          return .saved
        }
        return try transaction.remove(identifier) ? .saved : .wasAbsent
      }
    } catch {
      throw error.about(identifier)
    }
  }

  private func current(_ transaction: any SecretTransaction) throws(SecretError) -> Summary? {
    guard let secret = try transaction.lookUp(identifier) else { return nil }
    let version = form.hasVersions ? try version(of: transaction.item(identifier)) : nil
    return summary(of: StoredSecret(secret: SharedSecret(secret), version: version))
  }

  /// The metadata with the version of `value`, or `nil` if the existing metadata can stay.
  private func metadata(
    for value: StoredSecret, _ transaction: any SecretTransaction
  ) throws(SecretError) -> SecretMetadata? {
    guard let version = value.version else { return nil }
    var metadata = try transaction.item(identifier)?.metadata ?? SecretMetadata()
    if metadata.attributes[Self.versionAttribute] == String(version) { return nil }
    metadata.attributes[Self.versionAttribute] = String(version)
    return metadata
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

  func summary(of value: StoredSecret) -> Summary {
    Summary(fingerprint: value.secret.bytes.fingerprint(under: fingerprintKey.bytes), version: value.version)
  }

  func size(of value: StoredSecret) -> Int { value.secret.bytes.count }
}
