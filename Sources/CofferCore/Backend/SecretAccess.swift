public import FoundationEssentials

/// The operations on secrets, in a backend and in a transaction of it.
///
/// Your own backend implements ``secret(_:)``, ``items(inService:)``, ``store(_:for:metadata:history:)`` and
/// ``remove(_:history:)``. The other requirements have defaults. Implement those that your backend can do at less cost.
/// ``SecretBackend`` lists the *errors of the store*.
public protocol SecretAccess {
  /// Returns the secret with its value, exactly as stored, and its metadata, or `nil` if there is no such secret.
  ///
  /// `nil` means that the backend was read and does not contain the secret. Throws an error of the store in every other
  /// case, for example if the backend is locked, unreachable or damaged.
  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret?

  /// Returns the identifiers and metadata of the secrets in `service`, or of all secrets if `service` is `nil`, sorted
  /// by identifier. No value is decrypted. Throws an error of the store.
  func items(inService service: String?) throws(SecretError) -> [SecretItem]

  /// Stores `value`, and replaces any existing secret with that identifier.
  ///
  /// When the method returns, the secret is on the disk, if the backend uses one. When it throws, the existing secret
  /// is unchanged. An empty value is stored like any other. A backend that keeps no earlier versions ignores `history`.
  ///
  /// Throws `.tooLarge` if the value is larger than the backend's maximum, `.invalidMetadata` if the metadata exceeds
  /// its bounds, and else an error of the store.
  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError)

  /// Removes the secret. Returns `false` if there is no such secret. A backend that keeps no earlier versions ignores
  /// `history`.
  ///
  /// Throws `.ambiguous` in a keyring if several different items have the identifier, and else an error of the store.
  @discardableResult
  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool

  /// Returns the identifier and metadata of one secret, or `nil` if there is no such secret. The default reads the
  /// value too. Throws an error of the store.
  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem?

  /// Returns the secret's value, or `nil` if there is no such secret. The default reads the metadata too. Throws an
  /// error of the store.
  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes?

  /// Calls `body` with each secret in `service`, or with all secrets if `service` is `nil`, in any order, with one
  /// value in memory at a time. Throws what `body` throws, and an error of the store, even after calls of `body`.
  ///
  /// The default reads one secret after the other, and so may miss a change between two of them. A vault and memory
  /// show all secrets as of one moment.
  func forEachSecret(inService service: String?, _ body: (Secret) throws(SecretError) -> Void) throws(SecretError)

  /// Gives the secret another identifier, with its value and metadata, and in a vault with its earlier versions, unless
  /// `new` has versions of its own. Nothing happens if the two are the same.
  ///
  /// Throws `.missing` if there is no such secret, `.alreadyExists` if there is one with the identifier `new` and
  /// `replacing` is `false`, `.conflict` in a vault if the secret is in conflict, `.ambiguous` in a keyring if several
  /// different items have the identifier, and else an error of the store. The default stores the secret and then
  /// removes it, in a transaction of a backend that has them.
  func move(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError)

  /// Returns the versions of a secret that the backend still has, newest first, without values.
  ///
  /// The first is the current version, or the removal if the secret was removed. Returns an empty array if the backend
  /// has nothing of the secret, or keeps no earlier versions. Throws an error of the store.
  func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion]

  /// Returns one version with its value and the metadata that it had, or `nil` if the backend does not have it. Throws
  /// an error of the store.
  func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret?

  /// Returns the removed secrets in `service` that can be restored, or of all services if it is `nil`, sorted by
  /// identifier. Throws an error of the store.
  func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret]

  /// Removes the secret if there is one, with its earlier versions and every trace of it. Returns `false` if the
  /// backend had nothing of the secret. A version beyond the limit counts as long as the backend has not dropped it.
  ///
  /// Copies of a vault's file, and blocks of the disk that the file used before, may still contain the values. Throws
  /// an error of the store.
  @discardableResult
  func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool
}

/// What a call of `store` does with the metadata of the secret.
public struct MetadataChange: Sendable {
  private enum Change {
    case newValue(expires: Date?)
    case keep
    case replace(SecretMetadata)
  }
  private let change: Change

  /// Keeps the label and the attributes, and drops the expiry, which belonged to the old value.
  public static let newValue = MetadataChange(change: .newValue(expires: nil))
  /// Keeps the label and the attributes, and sets the expiry of the new value.
  public static func newValue(expires: Date?) -> MetadataChange {
    MetadataChange(change: .newValue(expires: expires))
  }
  /// Keeps all metadata.
  public static let keep = MetadataChange(change: .keep)
  /// Replaces the label, the expiry and the attributes. The time of creation stays if there is one.
  public static func replace(_ metadata: SecretMetadata) -> MetadataChange {
    MetadataChange(change: .replace(metadata))
  }

  /// The metadata that replaces all existing metadata, or `nil` if some of that stays.
  package var replacement: SecretMetadata? {
    if case .replace(let metadata) = change { metadata } else { nil }
  }

  /// Returns the label, expiry and attributes to write over `existing`, or `nil` if they stay as they are.
  package func given(over existing: SecretMetadata?) -> SecretMetadata? {
    switch change {
    case .keep: return nil
    case .replace(let metadata): return metadata
    case .newValue(let expires):
      if existing?.expires == expires { return nil }
      var metadata = existing ?? SecretMetadata()
      metadata.expires = expires
      return metadata
    }
  }

  /// Returns the metadata of a secret after a store at the time `now`, by the rule for all backends. Throws
  /// `.invalidMetadata` if a bound is exceeded.
  ///
  /// The time of creation is that of `existing`, or else the given one, or else `now`.
  public func applied(to existing: SecretMetadata?, now: Date) throws(SecretError) -> SecretMetadata {
    let given = given(over: existing)
    try given?.validate()
    var result = given ?? existing ?? SecretMetadata()
    result.created = existing?.created ?? given?.created ?? now
    result.modified = now
    return result
  }
}

/// What a change does to the earlier versions of the secret, in a backend that keeps earlier versions.
public enum History: Sendable {
  /// The same as in the last change of the secret. For a new secret, even one that was removed before: ``kept``.
  case unchanged
  /// The earlier versions are kept, up to the limit of the backend. Versions that were dropped do not come back.
  case kept
  /// No version before this change is shown or restored. The backend deletes them later, ``SecretAccess/erase(_:)`` at
  /// once.
  case none
}

extension SecretAccess {
  /// Returns the items of all services. Throws an error of the store.
  public func items() throws(SecretError) -> [SecretItem] { try items(inService: nil) }

  /// Stores `value` as a new value: label and attributes stay, and the old expiry is dropped, unless `metadata` says
  /// otherwise. The history is ``History/unchanged``. Throws `.tooLarge`, `.invalidMetadata` or an error of the store.
  public func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange = .newValue
  ) throws(SecretError) {
    try store(value, for: identifier, metadata: metadata, history: .unchanged)
  }

  /// Removes the secret. Returns `false` if there is no such secret. The history is ``History/unchanged``. Throws an
  /// error of the store.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try remove(identifier, history: .unchanged)
  }

  /// Whether there is such a secret. Throws an error of the store.
  public func contains(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try item(identifier) != nil }

  /// Removes every secret in `service`, in a transaction of a backend that has them. Returns how many there were.
  /// Throws an error of the store.
  @discardableResult
  public func removeAll(inService service: String, history: History = .unchanged) throws(SecretError) -> Int {
    if let backend = self as? any SecretBackend {
      return try backend.withTransaction { access throws(SecretError) in
        try access.removeAll(inService: service, history: history)
      }
    }
    let items = try items(inService: service)
    for item in items { try remove(item.identifier, history: history) }
    return items.count
  }

  /// Returns every secret in `service`, sorted by identifier, with all values in memory. Throws an error of the store.
  public func secrets(inService service: String? = nil) throws(SecretError) -> [Secret] {
    var all: [Secret] = []
    try forEachSecret(inService: service) { secret throws(SecretError) in all.append(secret) }
    return all.sorted { $0.identifier < $1.identifier }
  }

  /// Stores an earlier version again as the current one, with the metadata that it had.
  ///
  /// `version` is a number from ``versions(of:)``; `nil` stands for the newest earlier version. Returns the version, or
  /// `nil` if the backend does not have it, and then changes nothing. The version that was current becomes an earlier
  /// one. In a transaction, this is one step together with the other changes. Throws an error of the store.
  @discardableResult
  public func restore(_ identifier: SecretIdentifier, version: Int? = nil) throws(SecretError) -> SecretVersion? {
    let earlier = try versions(of: identifier)
      .first { [.earlier, .conflict].contains($0.kind) && (version ?? $0.number) == $0.number }
    guard let earlier, let secret = try secret(identifier, version: earlier.number) else { return nil }
    try store(secret.value, for: identifier, metadata: .replace(secret.metadata))
    return earlier
  }

  // MARK: Defaults

  /// Reads the secret, with its value. Throws an error of the store.
  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try secret(identifier)?.item
  }

  /// Reads the secret, with its metadata. Throws an error of the store.
  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try secret(identifier)?.value
  }

  /// Stores the secret and then removes it. Throws what the two throw, `.missing` and `.alreadyExists`.
  public func move(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError) {
    if let backend = self as? any SecretBackend, backend.features.contains(.transactions) {
      return try backend.withTransaction { access throws(SecretError) in
        try access.move(identifier, to: new, replacing: replacing)
      }
    }
    guard let secret = try secret(identifier) else { throw .missing(identifier) }
    if identifier == new { return }
    if !replacing, try contains(new) { throw .taken(new) }
    try store(secret.value, for: new, metadata: .replace(secret.metadata))
    do throws(SecretError) { try remove(identifier) } catch {
      // Outside of a transaction, the copy stays.
      throw self is any SecretBackend ? error.with(.changed) : error
    }
  }

  /// Reads one secret after the other. Throws what `body` throws, and an error of the store.
  public func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    for item in try items(inService: service) {
      // Another process may have removed the secret since it was listed.
      if let secret = try secret(item.identifier) { try body(secret) }
    }
  }

  // The defaults for a backend without `.history`. In a backend that reports it, they throw `.unsupported`.

  /// Returns no version. Throws `.unsupported` if the backend reports `.history`.
  public func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try requireNoHistory()
    return []
  }

  /// Returns `nil`. Throws `.unsupported` if the backend reports `.history`.
  public func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try requireNoHistory()
    return nil
  }

  /// Returns no secret. Throws `.unsupported` if the backend reports `.history`.
  public func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try requireNoHistory()
    return []
  }

  /// Removes the secret. Throws what ``remove(_:history:)`` throws, and `.unsupported` if the backend reports
  /// `.history`.
  @discardableResult
  public func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try requireNoHistory()
    return try remove(identifier, history: .none)
  }

  private func requireNoHistory() throws(SecretError) {
    if let backend = self as? any SecretBackend, backend.features.contains(.history) {
      throw .missingFeature("earlier versions")
    }
  }
}

extension SecretError {
  package static func missing(_ identifier: SecretIdentifier) -> SecretError {
    SecretError(
      .missing, "There is no secret “\(identifier.account)” in the service “\(identifier.service)”.",
      identifier: identifier)
  }

  package static func taken(_ identifier: SecretIdentifier) -> SecretError {
    SecretError(
      .alreadyExists, "There is a secret “\(identifier.account)” in the service “\(identifier.service)” already.",
      identifier: identifier)
  }
}

/// Throws `.tooLarge` for a secret of more than `maximum` bytes.
package func requireStorable(_ value: SecretBytes, for identifier: SecretIdentifier, maximum: Int) throws(SecretError) {
  guard value.count > maximum else { return }
  throw SecretError(
    .tooLarge, "The secret is \(value.count) bytes long, but this backend accepts at most \(maximum).",
    advice: "Encrypt large data in a file, and store the file's key here.", identifier: identifier)
}
