#if SwiftConfiguration
internal import Coffer
internal import CofferCore
internal import Configuration

/// Watches for one consumer. Yields the current reading, and then a reading after each change if it differs from the
/// one before. Several changes between two requests of the consumer give one reading.
actor SecretWatch {
  /// A reading as it is kept to detect a change. It reveals nothing about the values.
  private typealias State = Result<[SecretIdentifier: SecretFingerprint], SecretError>

  private let source: SecretSource
  private let key: AbsoluteConfigKey?
  private let fingerprintKey = SecretBytes.random(count: 32)
  /// The backend and its changes, once there is one.
  private var observed: (backend: any SecretBackend, changes: AsyncStream<SecretChange>)?
  private var last: State?

  /// The time between two attempts to reach a backend.
  private static var retryPause: Duration { .seconds(2) }

  /// `key` names the secret to watch. `nil`: all secrets of the service.
  init(of source: SecretSource, _ key: AbsoluteConfigKey? = nil) { (self.source, self.key) = (source, key) }

  /// The readings, for one consumer. The stream ends when the task that consumes it is cancelled.
  nonisolated func stream<Element: Sendable>(
    _ transform: @escaping @Sendable (SecretsSnapshot) -> Element
  ) -> AsyncStream<Element> {
    AsyncStream { () async -> Element? in await self.next().map(transform) }
  }

  private func next() async -> SecretsSnapshot? {
    while !Task.isCancelled {
      if last != nil, await !waitForChange() { return nil }
      let (reading, state) = await readNow()
      if last == state { continue }
      // Locking changes no value. The backend reports a change of all secrets when it is unlocked.
      if last != nil, case .failure(let error) = state, error.code == .locked { continue }
      last = state
      return reading
    }
    return nil
  }

  private func readNow() async -> (SecretsSnapshot, State) {
    let (backend, source, key, fingerprintKey) = (await observe(), source, key, fingerprintKey)
    return await CallThreads.shared.run(for: observed?.backend) {
      let reading = source.read(key, from: backend)
      let state = reading.secrets.map { secrets in
        secrets.mapValues { $0.fingerprint(under: fingerprintKey) }
      }
      return (reading, state)
    }
  }

  /// Returns the backend. Begins to observe it before the first read, so that every change after it is seen.
  private func observe() async -> Result<any SecretBackend, SecretError> {
    if let observed { return .success(observed.backend) }
    let source = source
    let found = await DefaultBackend.offPool { source.backend() }
    if case .success(let backend) = found {
      let changes = await CallThreads.shared.run(for: backend) {
        backend.features.contains(.changes) ? backend.changes() : AsyncStream.makeStream().stream
      }
      observed = (backend, changes)
    }
    return found
  }

  /// Returns `false` if the task was cancelled, or if the backend reports no more changes.
  private func waitForChange() async -> Bool {
    guard let changes = observed?.changes else {
      do { try await Task.sleep(for: Self.retryPause) } catch { return false }
      return true
    }
    for await change in changes where isAffected(change) { return true }
    return false
  }

  /// Whether `change` may affect the reading.
  private nonisolated func isAffected(_ change: SecretChange) -> Bool {
    guard let identifier = change.identifier else { return true }
    return identifier.service.utf8.elementsEqual(source.scope.service.utf8)
      && key.map { identifier.account.utf8.elementsEqual(source.account(of: $0).utf8) } ?? true
  }
}
#endif
