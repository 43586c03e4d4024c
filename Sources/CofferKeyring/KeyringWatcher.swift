#if Keyring
internal import CofferCore
internal import Glibc
internal import Synchronization

/// Tells of changes as the service's signals do, on a thread and a connection of its own.
///
/// The thread runs while somebody listens. A stream keeps the watcher, so it goes on without the backend.
/// When the service or the bus went away, it subscribes again as soon as there is one, and tells of a
/// change of everything.
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
    let stream = broadcast.subscribe { self.stopIfUnheard() }
    let thread = running.withLock { running in
      let thread = running ?? WatchThread(environment: environment, options: options, broadcast: broadcast)
      running = thread
      return thread
    }
    thread.waitUntilReady(seconds: options.connectDeadline)
    return stream
  }

  private func stopIfUnheard() {
    running.withLock { running in
      guard broadcast.isEmpty else { return }
      running?.stop()
      running = nil
    }
  }
}
#endif
