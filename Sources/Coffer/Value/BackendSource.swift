internal import CofferConfiguration
internal import CofferCore
internal import Synchronization

/// The backend of a value: a given one, or one that is chosen at the first use. Thread-safe.
package final class BackendSource: Sendable {
  private let choose: @Sendable () throws(SecretError) -> any SecretBackend
  private let lock = DeadlineLock()
  private let resolved = Mutex<(any SecretBackend)?>(nil)
  /// The backend, if it was given and need not be chosen.
  let given: (any SecretBackend)?
  /// The time between two attempts to choose a backend while a value is observed.
  let retryPause: Duration
  /// The hubs and caches that are kept until ``releaseKept()``. `nil` afterwards.
  private let kept = Mutex<[ObjectIdentifier: any AnyObject & Sendable]?>([:])

  /// `choose` is called at each use until it succeeds, because the cause of a failure may go away: a vault is created,
  /// or a keyring starts.
  package init(
    retryPause: Duration = .seconds(2),
    _ choose: @escaping @Sendable () throws(SecretError) -> any SecretBackend
  ) {
    (self.choose, self.retryPause, given) = (choose, retryPause, nil)
  }

  init(given backend: any SecretBackend) {
    choose = { () throws(SecretError) in backend }
    (retryPause, given) = (.seconds(2), backend)
  }

  /// The backend, if it has been given or chosen.
  var backend: (any SecretBackend)? { given ?? resolved.withLock { $0 } }

  func resolve() throws(SecretError) -> any SecretBackend {
    if let backend { return backend }
    return try lock.withLock(timeout: .seconds(60)) { () throws(SecretError) in
      if let backend { return backend }
      let backend = try choose()
      resolved.withLock { $0 = backend }
      return backend
    }
  }

  /// Keeps a hub or a cache, which owns this source, alive until ``releaseKept()``. Returns `false` afterwards.
  func keep(_ object: some AnyObject & Sendable) -> Bool {
    kept.withLock { kept in
      kept?[ObjectIdentifier(object)] = object
      return kept != nil
    }
  }

  func releaseKept() {
    // Released outside the lock.
    _ = kept.withLock { $0.take() }
  }
}
