#if Keyring
internal import CofferCore
internal import Glibc
internal import Synchronization

/// Broadcasts the changes that the service's signals report.
///
/// A ``WatchThread`` runs while there is a subscriber. A stream retains the watcher, and so outlives the
/// backend.
final class KeyringWatcher: Sendable {
  private let environment: [String: String]
  private let options: KeyringOptions
  private let broadcast = ChangeBroadcast()
  private let running = Mutex<WatchThread?>(nil)

  init(environment: [String: String], options: KeyringOptions) {
    self.environment = environment
    self.options = options
  }

  func subscribe() -> AsyncStream<SecretChange> {
    let stream = broadcast.subscribe { self.stopIfUnused() }
    let thread = running.withLock { running in
      let thread = running ?? WatchThread(environment: environment, options: options, broadcast: broadcast)
      running = thread
      return thread
    }
    thread.waitUntilReady(timeout: options.connectTimeout)
    return stream
  }

  private func stopIfUnused() {
    running.withLock { running in
      guard broadcast.isEmpty else { return }
      running?.stop()
      running = nil
    }
  }
}
#endif
