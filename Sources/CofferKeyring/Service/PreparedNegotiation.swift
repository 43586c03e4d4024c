#if Keyring
internal import Synchronization

/// The beginning of the next session, if something has begun it ahead.
final class PreparedNegotiation: Sendable {
  private let prepared = Mutex<SessionNegotiation?>(nil)

  var isPrepared: Bool { prepared.withLock { $0 != nil } }

  func prepare() { prepared.withLock { $0 = $0 ?? SessionNegotiation() } }

  func take() -> SessionNegotiation {
    prepared.withLock { prepared in
      defer { prepared = nil }
      return prepared
    } ?? SessionNegotiation()
  }
}
#endif
