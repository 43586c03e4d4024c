internal import CofferSystem
internal import Dispatch
internal import Synchronization

/// Notices that someone wrote to a vault: by inotify on its directory, and by looking every two seconds,
/// for file systems on which inotify sees nothing (a network, some overlays).
final class VaultWatcher: Sendable {
  private let path: String
  private let environment: VaultEnvironment
  private let isRunning = Mutex(false)
  private static let period = 2.0

  init(path: String, environment: VaultEnvironment) {
    self.path = path
    self.environment = environment
  }

  /// Calls `look` after each change and each period, on a thread of its own, as long as `isWanted` says so.
  /// A second call while it runs does nothing.
  func start(
    while isWanted: @escaping @Sendable () -> Bool,
    look: @escaping @Sendable (_ sawEvent: Bool) -> Void
  ) {
    let isFirst = isRunning.withLock { isRunning in
      defer { isRunning = true }
      return !isRunning
    }
    guard isFirst else { return }
    // Watching begins before this returns: a change right after it is not missed.
    let first = Self.watch(path, environment)
    DispatchQueue(label: "coffer.vault.watch").async {
      [path, environment, isRunning = RunningFlag(watcher: self)] in
      var watched = first
      while true {
        while isWanted() {
          var sawEvent = false
          do throws(FileSystemError) {
            if let (location, watch) = watched {
              sawEvent = try watch.wait(for: location.name, seconds: Self.period)
            } else {
              environment.sleep(Self.period)
              watched = Self.watch(path, environment)
              sawEvent = watched != nil
            }
          } catch {
            // An interrupted wait: look anyway.
          }
          if isWanted() { look(sawEvent) }
        }
        // Someone may have begun to listen just now, and been told that it runs already.
        if isRunning.clear(unless: isWanted) { return }
      }
    }
  }

  private static func watch(
    _ path: String,
    _ environment: VaultEnvironment
  ) -> (Location, any DirectoryWatch)? {
    do throws(FileSystemError) {
      let location = try environment.fileSystem.locate(path)
      return (location, try location.directory.watch())
    } catch {
      // No directory yet, or no inotify: the periodic look is left.
      return nil
    }
  }

  /// The running flag of a watcher that may be gone.
  private struct RunningFlag: Sendable {
    weak let watcher: VaultWatcher?

    /// Clears the flag, unless it is still wanted. Whether it was cleared, or there is no watcher any more.
    func clear(unless isWanted: () -> Bool) -> Bool {
      guard let watcher else { return true }
      return watcher.isRunning.withLock { isRunning in
        isRunning = isWanted()
        return !isRunning
      }
    }
  }
}
