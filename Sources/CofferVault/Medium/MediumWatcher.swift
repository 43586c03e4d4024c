internal import CofferCore
internal import CofferSystem
internal import Synchronization

/// Watches a vault's file for changes while it is observed: with inotify on its directory, and with a check every two
/// seconds for file systems that inotify does not cover (network, some overlays). Thread-safe.
///
/// The process has one thread for all watches. The checks run on the threads for calls, because a check can wait for a
/// lock.
final class MediumWatcher: Sendable {
  private struct State {
    var isStarted = false
    var period: (any AnyObject & Sendable)?
    var directory: (any DirectoryWatch)?
    var isRunning = false
    /// Another check that is due after the running one: `true` because of an event, `false` because of a period.
    var next: Bool?
  }

  private let medium: any VaultMedium
  private let period: Duration
  private let state = Mutex(State())

  /// `period` is the time after which the medium is checked without an event.
  init(_ medium: any VaultMedium, period: Duration) { (self.medium, self.period) = (medium, period) }

  /// If `isWanted` returns `true`, begins to call `look` after each change and each period; otherwise ends these calls.
  ///
  /// `sawEvent` is `true` after an event of the file. Calls do not overlap. Watching has begun or ended when this
  /// returns.
  func adjust(isWanted: () -> Bool, look: @escaping @Sendable (_ sawEvent: Bool) -> Void) {
    // Released outside the lock, because releasing a watch can release what its handler has captured.
    let released = state.withLock { state -> [(any Sendable)?] in
      let isWanted = isWanted()
      if isWanted == state.isStarted { return [] }
      let former: [(any Sendable)?] = [state.directory, state.period]
      state.isStarted = isWanted
      state.directory = isWanted ? watchDirectory(look) : nil
      state.period = isWanted ? watchPeriod(look) : nil
      return former
    }
    withExtendedLifetime(released) {}
  }

  private func watchDirectory(_ look: @escaping @Sendable (Bool) -> Void) -> (any DirectoryWatch)? {
    do throws(SecretError) {
      return try medium.watch { [weak self] in self?.request(sawEvent: true, look) }
    } catch {
      // There is no directory yet, or no inotify: only the periodic check remains.
      return nil
    }
  }

  private func watchPeriod(_ look: @escaping @Sendable (Bool) -> Void) -> (any AnyObject & Sendable)? {
    do throws(FileSystemError) {
      return try WatchThread.shared.every(period) { [weak self] in
        self?.request(sawEvent: false, look)
      }
    } catch {
      // The system has no thread or no inotify instance left. The next call of `adjust` for a new stream tries again.
      return nil
    }
  }

  private func request(sawEvent: Bool, _ look: @escaping @Sendable (Bool) -> Void) {
    let isFirst = state.withLock { state in
      if state.isRunning { state.next = sawEvent || state.next == true }
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isFirst { CallThreads.shared.submit(for: self) { [weak self] in self?.run(sawEvent: sawEvent, look) } }
  }

  private func run(sawEvent: Bool, _ look: @escaping @Sendable (Bool) -> Void) {
    var sawEvent = sawEvent
    while true {
      let isNew = renewDirectory(look)
      look(sawEvent || isNew)
      let next = state.withLock { state in
        defer { state.next = nil }
        state.isRunning = state.next != nil
        return state.next
      }
      guard let next else { return }
      sawEvent = next
    }
  }

  /// Watches the directory if it is not watched: it may have appeared or been replaced. Returns whether a watch began.
  private func renewDirectory(_ look: @escaping @Sendable (Bool) -> Void) -> Bool {
    guard state.withLock({ $0.isStarted && $0.directory?.isAlive != true }) else { return false }
    guard let directory = watchDirectory(look) else { return false }
    let replaced: Any? = state.withLock { state in
      guard state.isStarted else { return directory }
      defer { state.directory = directory }
      return state.directory
    }
    withExtendedLifetime(replaced) {}
    return true
  }
}
