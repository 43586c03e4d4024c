internal import CofferConfiguration
internal import CofferCore

/// The backend of a value: a given one, or one that is chosen at the first use. Thread-safe.
package final class BackendSource: Sendable {
  private let choose: @Sendable () throws(SecretError) -> any SecretBackend
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var backend: (any SecretBackend)?  // only under the lock

  /// `choose` is called at each use until it succeeds, because the cause of a failure can be removed from outside:
  /// a vault is created, or a keyring starts.
  package init(_ choose: @escaping @Sendable () throws(SecretError) -> any SecretBackend) {
    self.choose = choose
  }

  init(given backend: any SecretBackend) {
    choose = { () throws(SecretError) in backend }
  }

  /// The source of all values that are made without a backend.
  static let process = BackendSource { () throws(SecretError) in try CofferConfiguration.current().backend() }

  func resolve() throws(SecretError) -> any SecretBackend {
    try lock.withLock(timeout: .seconds(60)) { () throws(SecretError) in
      if let backend { return backend }
      let backend = try choose()
      self.backend = backend
      return backend
    }
  }
}
