#if SwiftConfiguration
internal import Coffer
internal import CofferCore

/// What is remembered of a state to detect a change. It reveals nothing of the values.
enum WatchedState: Equatable, Sendable {
  case absent
  case value(SecretFingerprint)
  case values([SecretIdentifier: SecretFingerprint])
  case failed(SecretError)
}

/// A reading that can be compared with the one before it.
protocol WatchableReading: Sendable {
  func state(under key: borrowing SecretBytes) -> WatchedState
}

extension SecretReading: WatchableReading {
  func state(under key: borrowing SecretBytes) -> WatchedState {
    switch self {
    case .absent: .absent
    case .value(let secret, _): .value(secret.bytes.fingerprint(under: key))
    case .failed(let error): .failed(error)
    }
  }
}

extension SecretsSnapshot: WatchableReading {
  func state(under key: borrowing SecretBytes) -> WatchedState {
    switch secrets {
    case .failure(let error): return .failed(error)
    case .success(let secrets):
      var fingerprints: [SecretIdentifier: SecretFingerprint] = [:]
      for (identifier, secret) in secrets { fingerprints[identifier] = secret.bytes.fingerprint(under: key) }
      return .values(fingerprints)
    }
  }
}

/// One consumer's watch: the current reading first, and then a reading after each change, if it differs from the one
/// before it. Several changes between two requests of the consumer are one.
actor SecretWatch<Reading: WatchableReading> {
  private let source: SecretSource
  private let read: @Sendable (Result<any SecretBackend, SecretError>) -> Reading
  /// Whether a change of the secret, or of all if it is `nil`, can change the reading.
  private let isAffected: @Sendable (SecretIdentifier?) -> Bool
  private let fingerprintKey = SharedSecret(.random(count: 32))
  /// The backend and its changes, once there is one.
  private var observed: (backend: any SecretBackend, changes: AsyncStream<SecretChange>)?
  private var last: WatchedState?

  /// The time between two attempts to reach a backend.
  private static var retryPause: Duration { .seconds(2) }

  init(
    of source: SecretSource, read: @escaping @Sendable (Result<any SecretBackend, SecretError>) -> Reading,
    isAffected: @escaping @Sendable (SecretIdentifier?) -> Bool
  ) {
    self.source = source
    self.read = read
    self.isAffected = isAffected
  }

  /// The readings, for one consumer. The stream ends when the task that consumes it is cancelled.
  nonisolated func stream<Element: Sendable>(
    _ transform: @escaping @Sendable (Reading) -> Element
  ) -> AsyncStream<Element> {
    AsyncStream { () async -> Element? in await self.next().map(transform) }
  }

  private func next() async -> Reading? {
    while !Task.isCancelled {
      if last != nil, await !waitForChange() { return nil }
      let (reading, state) = await readNow()
      if last == state { continue }
      // Locking changes no value. The backend reports a change of all secrets when it is unlocked.
      if last != nil, case .failed(let error) = state, error.code == .locked { continue }
      last = state
      return reading
    }
    return nil
  }

  private func readNow() async -> (Reading, WatchedState) {
    let (backend, read, key) = (await observe(), read, fingerprintKey)
    return await CallThreads.shared.run {
      let reading = read(backend)
      return (reading, reading.state(under: key.bytes))
    }
  }

  /// Returns the backend. Begins to observe it before the first read, so that every change after it is seen.
  private func observe() async -> Result<any SecretBackend, SecretError> {
    if let observed { return .success(observed.backend) }
    let source = source
    let found = await DefaultBackend.offPool { source.backend() }
    if case .success(let backend) = found {
      let changes = await CallThreads.shared.run { (backend as? any ObservableSecretBackend)?.changes() }
      observed = (backend, changes ?? AsyncStream.makeStream().stream)
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

  private nonisolated func isAffected(_ change: SecretChange) -> Bool {
    guard let identifier = change.identifier else { return isAffected(nil) }
    return identifier.service.utf8.elementsEqual(source.scope.service.utf8) && isAffected(identifier)
  }
}
#endif
