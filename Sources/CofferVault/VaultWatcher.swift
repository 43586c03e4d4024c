internal import CofferCore
internal import CofferSystem
internal import Dispatch
internal import Synchronization

/// Watches a vault for changes: with inotify on its directory, and by looking every two seconds for file systems that
/// inotify does not cover (network, some overlays). Thread-safe.
final class VaultWatcher: Sendable {
  private let path: String
  private let environment: VaultEnvironment
  private let isRunning = Mutex(false)
  private static let period = Duration.seconds(2)

  init(path: String, environment: VaultEnvironment) {
    self.path = path
    self.environment = environment
  }

  /// Calls `look` after each change and each period on a thread of its own, for as long as `isWanted` returns `true`.
  /// Does nothing if it is already running. Watching has begun when this returns.
  func start(
    while isWanted: @escaping @Sendable () -> Bool,
    look: @escaping @Sendable (_ sawEvent: Bool) -> Void
  ) {
    let isFirst = isRunning.withLock { isRunning in
      defer { isRunning = true }
      return !isRunning
    }
    guard isFirst else { return }
    let first = Self.watch(path, environment)
    DispatchQueue(label: "coffer.vault.watch").async {
      [path, environment, isRunning = RunningFlag(watcher: self)] in
      var watched = first
      repeat {
        while isWanted() {
          var sawEvent = false
          if let (name, watch) = watched {
            do throws(FileSystemError) { sawEvent = try watch.wait(for: name, timeout: Self.period) } catch {
              // A signal interrupted the wait: look anyway.
            }
          } else {
            environment.sleep(Self.period)
            watched = Self.watch(path, environment)
            sawEvent = watched != nil
          }
          if isWanted() { look(sawEvent) }
        }
        // A listener may have come after the last check, and `start` did nothing for it.
      } while !isRunning.clear(unless: isWanted)
    }
  }

  private static func watch(
    _ path: String, _ environment: VaultEnvironment
  ) -> (name: String, any DirectoryWatch)? {
    do throws(SecretError) {
      let location = try StorageLocation(path, in: environment.fileSystem)
      return (location.name, try location.watch())
    } catch {
      // There is no directory yet, or no inotify: only the periodic look remains.
      return nil
    }
  }

  /// The running flag of a watcher that may have been released.
  private struct RunningFlag: Sendable {
    weak let watcher: VaultWatcher?

    /// Clears the flag unless the watcher is still wanted. Returns whether the flag is cleared or the watcher released.
    func clear(unless isWanted: () -> Bool) -> Bool {
      guard let watcher else { return true }
      return watcher.isRunning.withLock { isRunning in
        isRunning = isWanted()
        return !isRunning
      }
    }
  }
}
