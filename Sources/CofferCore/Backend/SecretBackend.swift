/// A store of secrets: a keyring, a vault file, memory.
///
/// Calls are synchronous and block up to the backend's timeout, or as long as a keyring shows a prompt. `async` code
/// calls them inside ``perform(_:)``. Every method may be called from any thread.
///
/// A backend is an object. Values with the same key and the same object see each other's changes. To change what
/// another backend does, for example to count calls, subclass ``ForwardingBackend``.
///
/// `CofferTesting` contains the conformance suite that every backend passes.
///
/// ## Errors
///
/// Every method throws an *error of the store* if the store cannot be used:
/// - `.locked`, `.wrongKey`, `.promptDismissed` or `.costLimitExceeded` if it cannot be unlocked;
/// - `.denied`, `.unavailable` or `.io` if the system or the service refuses or fails;
/// - `.timedOut` at a deadline, and `.conflict` inside a transaction of the same backend;
/// - `.outcomeUnknown` if a store on another machine did not say whether it made a change;
/// - for a vault, `.vaultNotFound`, `.notAVault`, `.unsupportedVersion` or `.tampered` if the file cannot be read, and
///   `.rolledBack`, `.unexpectedVault`, `.unexpectedKey`, `.untrusted` or `.unverifiable` if it is not the one that was
///   seen before;
/// - `.unsupported` or `.configuration` if the backend has no such store.
///
/// Each backend documents which of these it throws. Each method documents what it throws in addition.
public protocol SecretBackend: SecretAccess, AnyObject, Sendable {
  /// What the backend does beyond storing values. The default is nothing.
  var features: SecretFeatures { get }

  /// Runs `body` with exclusive access to the backend, then commits its changes in one durable step. Returns the error
  /// of `body` as a failure; then nothing is changed. Programs call `withTransaction`, which throws it.
  ///
  /// Reads in `body` see the transaction's own changes. In `body`, use only the transaction: the backend's own methods
  /// throw `.conflict`. Keep `body` short, because other writers wait for it. In `withTransaction`, the calls of a
  /// transaction throw `.conflict` after `body` has returned.
  ///
  /// **`body` may run more than once**, because a store that many machines share runs it again after a lost race. It
  /// must have no effect outside of the transaction: it does not ask, print, wait or count. Only the result of the last
  /// run is returned. If it changes nothing, nothing is written. A vault and memory run it once.
  ///
  /// The default, for a backend without `.transactions`, runs `body` on the backend itself: each call takes effect at
  /// once, other programs see the steps in between, and what was changed before `body` fails stays changed. To lose
  /// nothing then, read and check first, store before you remove, and store the least important data last.
  ///
  /// Throws an error of the store.
  func transaction<R, E: Error>(_ body: (any SecretTransaction) throws(E) -> R) throws(SecretError) -> Result<R, E>

  /// Returns a new stream of the changes from now on, by this process and by others. Each stream yields every change
  /// once.
  ///
  /// A failure to watch does not end the stream. When the backend can watch again, it reports a change of all secrets.
  /// Several changes of one secret by another process, or through another object, may be reported as one. A stream that
  /// is not read keeps a limited number of changes. If there are more, one change of all secrets replaces them. The
  /// default, for a backend without `.changes`, is a stream that ends at once.
  func changes() -> AsyncStream<SecretChange>

  /// Takes the lease of a secret, which need not exist. Returns `nil`, without waiting, if another thread or process
  /// has the lease. The system releases the leases of a process that ends.
  ///
  /// Throws `.denied` or `.io` if the system refuses the lease, and else an error of the store. The default throws
  /// `.unsupported`, for a backend without `.leases`.
  func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease?

  /// Opens the store if it is not open yet, so that a failure shows early. The default does nothing. Throws an error of
  /// the store.
  func unlock() throws(SecretError)

  /// Releases what the backend keeps between calls, such as an open file and keys in memory. The next call opens it
  /// again. Closing twice has no further effect. The default does nothing.
  ///
  /// Throws `.timedOut` if another thread uses the backend for too long, and `.conflict` inside a transaction of the
  /// same backend.
  func close() throws(SecretError)

  /// A backend for the same store that never shows a prompt, for reads that no person asked for, such as a read after a
  /// change. A read that would need a prompt throws `.locked`.
  ///
  /// The default is the backend itself, for backends without prompts.
  var withoutPrompts: any SecretBackend { get }
}

/// A transaction. Its methods throw `.conflict` after the closure that received the transaction has returned.
public protocol SecretTransaction: SecretAccess {}

/// What a backend does beyond storing values. The conformance suite tests what a backend reports.
public struct SecretFeatures: OptionSet, Sendable {
  /// The bits.
  public let rawValue: Int
  /// Creates a set of the features with these bits.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Several changes in one atomic step.
  public static let transactions = SecretFeatures(rawValue: 1)
  /// A stream of the changes by this process and by others.
  public static let changes = SecretFeatures(rawValue: 2)
  /// Locks on single secrets.
  public static let leases = SecretFeatures(rawValue: 4)
  /// Earlier versions of replaced and removed secrets.
  public static let history = SecretFeatures(rawValue: 8)
}

extension SecretBackend {
  /// Runs `body` in a transaction, and returns its result. **`body` may run more than once**: the method `transaction`
  /// says what it may do, and what a backend without transactions does. Throws what `body` throws, and an error of the
  /// store.
  public func withTransaction<R>(_ body: (any SecretTransaction) throws -> R) throws -> R {
    try transaction { transaction throws(any Error) in try RoutedAccess.whileOpen(transaction, body) }.get()
  }

  /// Runs `body` in a transaction, and returns its result. For a body with typed errors.
  public func withTransaction<R>(_ body: (any SecretTransaction) throws(SecretError) -> R) throws(SecretError) -> R {
    try transaction { transaction throws(SecretError) in try RoutedAccess.whileOpen(transaction, body) }.get()
  }

  /// Runs `body` in a transaction on a thread outside the cooperative pool, as ``perform(_:)`` does. Throws an error of
  /// the store, and what `body` throws.
  public func withTransaction<R: Sendable>(
    _ body: @escaping @Sendable (any SecretTransaction) throws(SecretError) -> R
  ) async throws(SecretError) -> R {
    try await perform { backend throws(SecretError) in try backend.withTransaction(body) }
  }

  /// Runs `body` with this backend on a thread outside the cooperative pool, and returns its result. Call a backend
  /// from `async` code only in this way: calls block, and a keyring can show a prompt for minutes.
  ///
  /// ```swift
  /// let names = try await backend.perform { try $0.items().map(\.identifier) }
  /// ```
  ///
  /// At most 64 bodies run at a time for one backend; more wait in order. Cancelling the task does not end a body.
  /// Throws what `body` throws.
  public func perform<R: Sendable, E: Error>(_ body: @escaping @Sendable (Self) throws(E) -> R) async throws(E) -> R {
    try await CallThreads.shared.run(for: self) { Result { () throws(E) in try body(self) } }.get()
  }

  // MARK: Defaults

  /// No feature.
  public var features: SecretFeatures { [] }

  /// Runs `body` on the backend itself. Throws `.unsupported` if the backend reports `.transactions`.
  public func transaction<R, E: Error>(
    _ body: (any SecretTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    if features.contains(.transactions) { throw .missingFeature("transactions") }
    return Result { () throws(E) in try RoutedAccess.inSteps(on: self, body) }
  }

  /// Returns a stream that ends at once.
  public func changes() -> AsyncStream<SecretChange> { AsyncStream { $0.finish() } }

  /// Throws `.unsupported`.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    throw SecretError(
      .unsupported, "This backend has no leases.",
      advice: "Use a vault, or let only one process change the secret.", identifier: identifier)
  }

  /// Does nothing.
  public func unlock() throws(SecretError) {}

  /// Does nothing.
  public func close() throws(SecretError) {}

  /// The backend itself.
  public var withoutPrompts: any SecretBackend { self }
}

extension SecretError {
  static func missingFeature(_ name: String) -> SecretError {
    SecretError(.unsupported, "This backend reports \(name), but does not implement them.")
  }
}
