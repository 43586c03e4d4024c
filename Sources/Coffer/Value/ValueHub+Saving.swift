internal import CofferCore
internal import FoundationEssentials

/// The bytes of a secret, and the version of their form if the value has versions.
struct EncodedValue: Sendable {
  let secret: SecretBytes
  /// `nil` for a value without versions.
  let version: Int?
  /// The label for a secret that has none, and the expiry of the value. A read does not set them.
  var label: String?
  var expires: Date?
}

/// What the backend must contain for a value to be saved.
enum SaveExpectation: Sendable {
  case anything
  /// The value with this summary, or no value if it is `nil`.
  case only(ValueHub.Summary?)
}

enum SaveResult: Sendable {
  case saved
  /// There was no value to remove.
  case wasAbsent
  /// The backend contains something else than was expected. It was not changed.
  case isDifferent
}

extension ValueHub {
  /// A summary of a value, by which changes are detected. It reveals nothing about the value.
  struct Summary: Hashable, Sendable {
    let fingerprint: SecretFingerprint
    let version: Int?
  }

  /// The attribute of the secret's metadata with the version of the bytes, as a decimal number.
  static var versionAttribute: String { "coffer.version" }

  /// Returns the value, or `nil` if there is none. Without `mayPrompt`, a backend that would need a prompt throws
  /// `.locked`.
  func load(mayPrompt: Bool) throws(SecretError) -> EncodedValue? {
    let backend = try source.resolve()
    return try read(mayPrompt ? backend : backend.withoutPrompts)
  }

  private func read(_ access: any SecretAccess) throws(SecretError) -> EncodedValue? {
    if !form.hasVersions { return try access.lookUp(identifier).map { EncodedValue(secret: $0, version: nil) } }
    return try access.secret(identifier).map { secret throws(SecretError) in
      EncodedValue(secret: secret.value, version: try version(of: secret.metadata))
    }
  }

  /// The version in the metadata of a secret: 1 if it was stored without one.
  private func version(of metadata: SecretMetadata) throws(SecretError) -> Int {
    guard let text = metadata.attributes[Self.versionAttribute] else { return 1 }
    if let version = Int(text), version > 0 { return version }
    throw SecretError(
      .unsupportedVersion, "The attribute \(Self.versionAttribute) of the secret is not a version.",
      advice: "Store a new value, or restore an earlier version of the secret.")
  }

  /// Stores the value, or removes it if `value` is `nil`, in one durable step.
  ///
  /// With an expectation, the comparison and the change are one step for the threads of this process, and for other
  /// processes if the backend has transactions.
  func store(_ value: EncodedValue?, over expectation: SaveExpectation) throws(SecretError) -> SaveResult {
    do throws(SecretError) {
      let backend = try source.resolve()
      if case .anything = expectation {
        guard let value else { return try backend.remove(identifier, history: form.history) ? .saved : .wasAbsent }
        if value.version == nil && value.label == nil {
          try backend.store(
            value.secret, for: identifier, metadata: .newValue(expires: value.expires), history: form.history)
          return .saved
        }
      }
      let result = try backend.withTransaction { transaction throws(SecretError) -> SaveResult? in
        if case .only(let expected) = expectation {
          guard try read(transaction).map(summary) == expected else { return .isDifferent }
        }
        guard let value else { return try transaction.remove(identifier, history: form.history) ? .saved : .wasAbsent }
        return try put(value, transaction, in: backend) ? .saved : nil
      }
      guard let result else { throw Self.notKept }
      return result
    } catch {
      throw error.about(identifier)
    }
  }

  /// Stores the value with its version. If the backend does not keep the version, the value would be read as the first
  /// version: then throws `.unsupported`, or without a transaction puts the old secret back and returns `false`.
  private func put(
    _ value: EncodedValue, _ transaction: any SecretTransaction, in backend: any SecretBackend
  ) throws(SecretError) -> Bool {
    let isChecked = value.version ?? 1 > 1
    let isAtomic = backend.features.contains(.transactions)
    let old = isChecked && !isAtomic ? try transaction.secret(identifier) : nil
    let existing = if let old { old.item } else { try transaction.item(identifier) }
    try transaction.store(
      value.secret, for: identifier, metadata: .replace(metadata(for: value, existing?.metadata)),
      history: form.history)
    if !isChecked { return true }
    let kept = try transaction.item(identifier)?.metadata
    if try kept.map(version) == value.version { return true }
    if isAtomic { throw Self.notKept }
    if let old {
      try transaction.store(old.value, for: identifier, metadata: .replace(old.metadata))
    } else {
      try transaction.remove(identifier)
    }
    return false
  }

  private static var notKept: SecretError {
    SecretError(
      .unsupported, "The store does not keep the version of the value, so the value was not changed.",
      advice: "Use a store that keeps attributes, such as a vault.")
  }

  /// The metadata to store with the value, with the expiry of this value.
  private func metadata(for value: EncodedValue, _ existing: SecretMetadata?) -> SecretMetadata {
    var metadata = existing ?? SecretMetadata()
    // A person may have changed the label.
    metadata.label = metadata.label ?? value.label
    metadata.expires = value.expires
    if let version = value.version { metadata.attributes[Self.versionAttribute] = String(version) }
    return metadata
  }

  /// Returns a stream of the backend's changes, or `nil` if the backend reports none. Throws if it cannot be reached
  /// yet.
  func changes() throws(SecretError) -> AsyncStream<SecretChange>? {
    let backend = try source.resolve()
    return backend.features.contains(.changes) ? backend.changes() : nil
  }

  func summary(of value: EncodedValue) -> Summary {
    Summary(fingerprint: value.secret.fingerprint(under: fingerprintKey), version: value.version)
  }
}
