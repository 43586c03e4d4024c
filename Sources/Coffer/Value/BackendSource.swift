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
  /// The hubs that are kept until ``releaseHubs()``. `nil` afterwards.
  private let kept = Mutex<[ObjectIdentifier: ValueHub]?>([:])

  /// `choose` is called at each use until it succeeds, because the cause of a failure can be removed from outside:
  /// a vault is created, or a keyring starts.
  package init(
    retryPause: Duration = .seconds(2),
    _ choose: @escaping @Sendable () throws(SecretError) -> any SecretBackend
  ) {
    self.choose = choose
    self.retryPause = retryPause
    given = nil
  }

  init(given backend: any SecretBackend) {
    choose = { () throws(SecretError) in backend }
    retryPause = .seconds(2)
    given = backend
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

  /// Returns the hub of a secret, and keeps it until ``releaseHubs()``.
  func keptHub(for identifier: SecretIdentifier, form: SecretForm) -> ValueHub {
    let hub = HubRegistry.shared.hub(for: identifier, source: self, form: form)
    kept.withLock { $0?[ObjectIdentifier(hub)] = hub }
    return hub
  }

  /// Releases the hubs, which own this source.
  func releaseHubs() {
    let released = kept.withLock { kept in
      defer { kept = nil }
      return kept
    }
    withExtendedLifetime(released) {}
  }
}
