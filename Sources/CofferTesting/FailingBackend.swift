public import CofferCore
internal import Synchronization

/// A backend that fails when a test says so, and otherwise passes every call on to another backend. Thread-safe.
///
/// ```swift
/// let backend = FailingBackend()
/// backend.fail(.lookUp, with: SecretError(.locked, "The keyring is locked."))
/// ```
///
/// A failing call changes nothing. A call inside a transaction fails like one outside of it. Each method also throws
/// what the same method of its `base` throws.
public final class FailingBackend: ForwardingBackend, @unchecked Sendable {  // the state is behind a lock
  /// The calls that can fail.
  public enum Call: Hashable, Sendable, CaseIterable {
    /// `lookUp`, `secret` and `forEachSecret`.
    case lookUp
    /// `store` and `move`.
    case store
    /// `remove` and `erase`.
    case remove
    /// `items`, `item`, `versions` and `removedItems`.
    case items
    /// The commit of a transaction, after its closure has returned. Only in a backend with transactions.
    case commit
    /// `tryLease`.
    case lease

    init(_ call: SecretCall) {
      self =
        switch call {
        case .value, .values: .lookUp
        case .item, .items: .items
        case .store, .move: .store
        case .remove: .remove
        case .commit: .commit
        }
    }
  }

  /// An error, and the number of calls that still fail with it. `nil`: all calls fail.
  private typealias Failure = (error: SecretError, remaining: Int?)

  private let state = Mutex<(failures: [Call: Failure], counts: [Call: Int])>(([:], [:]))

  /// Creates a backend that passes its calls to `base`, or else to memory. A test can change `base` as another process
  /// would.
  public override init(_ base: any SecretBackend = MemoryBackend()) { super.init(base) }

  /// Returns `access`, or throws the error for the call.
  public override func decorate(
    _ access: any SecretAccess, for call: SecretCall
  ) throws(SecretError) -> any SecretAccess {
    try admit(Call(call))
    return access
  }

  /// Makes the next `times` calls of that kind throw `error`, or all calls if `times` is `nil`.
  public func fail(_ call: Call, with error: SecretError, times: Int? = nil) {
    state.withLock { $0.failures[call] = (error, times) }
  }

  /// Lets all calls succeed again.
  public func recover() { state.withLock { $0.failures = [:] } }

  /// The number of calls of that kind, including those that failed.
  public func count(of call: Call) -> Int { state.withLock { $0.counts[call] ?? 0 } }

  private func admit(_ call: Call) throws(SecretError) {
    let error: SecretError? = state.withLock { state in
      state.counts[call, default: 0] += 1
      guard let failure = state.failures[call] else { return nil }
      if let remaining = failure.remaining {
        if remaining == 0 { return nil }
        state.failures[call]?.remaining = remaining - 1
      }
      return failure.error
    }
    if let error { throw error }
  }

  /// Takes the lease of a secret, or throws the error for ``Call/lease``.
  public override func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    try admit(.lease)
    return try base.tryLease(identifier)
  }
}
