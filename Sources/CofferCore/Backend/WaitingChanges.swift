internal import Synchronization

/// Changes that wait in memory, and must be stored before their backend is closed.
package enum WaitingChanges {
  private static let store = Mutex<(@Sendable (any SecretBackend) throws(SecretError) -> Void)?>(nil)

  /// Runs `body` before a backend is closed. Calls after the first have no effect.
  package static func storeBeforeClose(by body: @escaping @Sendable (any SecretBackend) throws(SecretError) -> Void) {
    store.withLock { $0 = $0 ?? body }
  }

  /// Stores the waiting changes of `backend`. Tries each of them, and then throws the first error.
  package static func store(in backend: any SecretBackend) throws(SecretError) {
    if let store = store.withLock({ $0 }) { try store(backend) }
  }
}
