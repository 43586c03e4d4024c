internal import CofferConfiguration
internal import CofferCore

/// Where a value's backend comes from: given, or chosen at first use.
package final class BackendSource: Sendable {
  private let choose: @Sendable () throws(SecretError) -> any SecretBackend
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var backend: (any SecretBackend)?  // only under the lock

  /// `choose` is called at the first use, and again at each use until it succeeds: a failure to choose is
  /// put right from outside, with `secret init` or a keyring that starts.
  package init(_ choose: @escaping @Sendable () throws(SecretError) -> any SecretBackend) {
    self.choose = choose
  }

  init(given backend: any SecretBackend) {
    choose = { () throws(SecretError) in backend }
  }

  /// The one that values without a backend of their own share.
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
