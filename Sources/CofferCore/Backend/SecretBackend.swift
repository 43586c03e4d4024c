/// A store of secrets: a keyring, a vault file, memory.
///
/// Calls are synchronous and block up to the backend's timeout, or as long as a keyring shows a prompt. In `async`
/// code, use the overloads with the same names, which run outside the cooperative thread pool. Every method may be
/// called from any thread.
///
/// A backend is an object. Values with one key in the same object see each other's changes.
///
/// `CofferTesting` contains the conformance suite that every backend passes.
///
/// ## Errors
///
/// Every method throws an *error of the store* if the store cannot be used:
/// - `.locked`, `.wrongKey`, `.promptDismissed` or `.costLimitExceeded` if it cannot be unlocked;
/// - `.denied`, `.unavailable` or `.io` if the system or the service refuses or fails;
/// - `.timedOut` at a deadline, and `.conflict` inside a transaction of the same backend;
/// - for a vault, `.vaultNotFound`, `.notAVault`, `.unsupportedVersion` or `.tampered` if the file cannot be read, and
///   `.rolledBack`, `.unexpectedVault`, `.unexpectedKey` or `.unverifiable` if it is not the one that was seen before;
/// - `.unsupported` or `.configuration` if the backend has no such store.
///
/// Each backend documents which of these it throws. Each method documents what it throws in addition.
public protocol SecretBackend: SecretAccess, AnyObject, Sendable {
  /// Returns the secrets with these identifiers, without those that do not exist. The default looks up one after the
  /// other. Throws an error of the store.
  func lookUp(_ identifiers: [SecretIdentifier]) throws(SecretError) -> [SecretIdentifier: SharedSecret]

  /// Returns the identifiers of `items(inService:)`. For a backend that reads metadata separately, this is cheaper. Throws
  /// an error of the store.
  func identifiers(inService service: String?) throws(SecretError) -> [SecretIdentifier]

  /// A backend for the same store that never shows a prompt, for reads that no person asked for, such as those that follow
  /// a change. A read that would need a prompt throws `.locked`.
  ///
  /// The default is the backend itself, for backends without prompts.
  var withoutPrompts: any SecretBackend { get }
}

extension SecretBackend {
  /// The backend itself.
  public var withoutPrompts: any SecretBackend { self }

  /// Returns the secrets with these identifiers, by a lookup of each. Throws an error of the store.
  public func lookUp(
    _ identifiers: [SecretIdentifier]
  ) throws(SecretError) -> [SecretIdentifier: SharedSecret] {
    var result: [SecretIdentifier: SharedSecret] = [:]
    for identifier in identifiers where result[identifier] == nil {
      if let secret = try lookUp(identifier) { result[identifier] = SharedSecret(secret) }
    }
    return result
  }

  /// Returns the identifiers of `items(inService:)`. Throws an error of the store.
  public func identifiers(inService service: String?) throws(SecretError) -> [SecretIdentifier] {
    try items(inService: service).map(\.identifier)
  }
}

/// What can be done with one secret after the other, in a backend and in a transaction of it.
public protocol SecretAccess {
  /// Returns the secret's bytes, exactly as stored, or `nil` if there is no such secret.
  ///
  /// `nil` means that the backend was read and does not contain the secret. Throws an error of the store in every other
  /// case, for example if the backend is locked, unreachable or damaged.
  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes?

  /// Stores `secret`, and replaces any existing secret with that identifier.
  ///
  /// When the method returns, the secret is on the disk, if the backend uses one. When it throws, the existing
  /// secret is unchanged. An empty secret is stored like any other. `metadata` is merged by the rule of
  /// ``SecretMetadata/merged(_:over:now:)``; `nil` keeps the existing metadata.
  ///
  /// Throws `.tooLarge` if the secret is larger than the backend's maximum, `.invalidMetadata` if the metadata exceeds its
  /// bounds, and else an error of the store.
  func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError)

  /// Removes the secret. Returns `false` if there is no such secret.
  ///
  /// Throws `.ambiguous` in a ``MultipleItemSecretBackend`` if several different items have the identifier, and else an
  /// error of the store.
  @discardableResult
  func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool

  /// Returns the identifiers and metadata of the secrets in `service`, or of all secrets if `service` is `nil`, sorted
  /// by identifier. No value is decrypted. Throws an error of the store.
  func items(inService service: String?) throws(SecretError) -> [SecretItem]

  /// Returns the identifier and metadata of one secret, or `nil` if there is no such secret. Throws an error of the store.
  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem?
}

extension SecretAccess {
  /// Stores `secret` and keeps the existing metadata. Throws `.tooLarge` or an error of the store.
  public func store(_ secret: borrowing SecretBytes, for identifier: SecretIdentifier) throws(SecretError) {
    try store(secret, for: identifier, metadata: nil)
  }

  /// Returns the identifier and metadata of one secret, by a search through its service. Throws an error of the store.
  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try items(inService: identifier.service).first { $0.identifier == identifier }
  }
}

/// A backend that reports changes by this process and by others.
public protocol ObservableSecretBackend: SecretBackend {
  /// Returns a new stream of the changes from now on. Each stream yields every change once.
  ///
  /// A failure to watch does not end the stream. When the backend can watch again, it reports a change of all secrets.
  /// Several changes of one secret by another process, or through another object, may be reported as one. A stream that is
  /// not read keeps a limited number of changes. Further ones replace them by one change of all secrets.
  func changes() -> AsyncStream<SecretChange>
}

/// A notice that a secret was stored or removed, without the value. To get the value, look the secret up again. Notices are
/// equal if they have the same identifier.
public struct SecretChange: Hashable, Sendable {
  /// The secret that was stored or removed, or `nil` if any secret may have been.
  public let identifier: SecretIdentifier?
  /// The object that made the change by ``making(for:_:)``, or `nil` if that is not known.
  package let origin: ObjectIdentifier?

  /// Creates the notice for one secret, or for all secrets if `identifier` is `nil`.
  public init(_ identifier: SecretIdentifier?) { (self.identifier, origin) = (identifier, nil) }

  /// Creates the notice for a change that the call on the backend has made itself. A change by others that the call
  /// only notices has no origin.
  package init(madeNow identifier: SecretIdentifier) {
    (self.identifier, origin) = (identifier, Self.currentOrigin)
  }

  @TaskLocal private static var currentOrigin: ObjectIdentifier?

  /// Runs `body`. The changes that its calls on a backend make have `object` as their origin, if the backend knows which
  /// call has made a change. `object` knows the new value, and need not read it again.
  package static func making<R>(
    for object: AnyObject, _ body: () throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try $currentOrigin.withValue(ObjectIdentifier(object)) { Result(catching: body) }.get()
  }

  /// Whether both have the same identifier.
  public static func == (left: SecretChange, right: SecretChange) -> Bool {
    left.identifier == right.identifier
  }

  /// Hashes the identifier.
  public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

/// A backend that can make several changes in one atomic step.
public protocol TransactionalSecretBackend: SecretBackend {
  /// Runs `body` with exclusive access to the backend, then commits its changes in one durable step.
  ///
  /// Reads in `body` see the transaction's own changes. If `body` throws, nothing is changed. In `body`, use only the
  /// transaction: the backend's own methods throw `.conflict`. Keep `body` short, because other writers wait for it.
  /// The transaction throws `.conflict` after `body` has returned.
  ///
  /// Throws what `body` throws, and an error of the store. For a closure that throws other errors than `SecretError` there is
  /// an overload.
  func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R
}

/// A transaction. Its methods throw `.conflict` after the closure that received the transaction has returned.
public protocol SecretTransaction: SecretAccess {
  /// Drops every earlier version of a secret, and the record of its removal, when the transaction is committed. The secret
  /// itself stays as the transaction leaves it, whether it is changed before the call or after.
  ///
  /// Returns `false` if the backend had neither a value nor an earlier version of the secret. Throws an error of the store.
  /// The default throws `.unsupported`, for backends that keep no versions.
  @discardableResult
  func purge(_ identifier: SecretIdentifier) throws(SecretError) -> Bool
}

extension SecretTransaction {
  /// Throws `.unsupported`.
  @discardableResult
  public func purge(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    throw SecretError(
      .unsupported, "This store keeps no earlier versions, so none can be purged.",
      advice: "Remove the secret, or use a vault.", identifier: identifier)
  }

  /// Removes every secret in `service`. Returns how many there were. Throws an error of the store.
  @discardableResult
  public func removeAll(inService service: String) throws(SecretError) -> Int {
    let items = try items(inService: service)
    for item in items { try remove(item.identifier) }
    return items.count
  }
}
