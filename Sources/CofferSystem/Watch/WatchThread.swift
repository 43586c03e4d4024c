internal import CLinux
internal import CofferCore
internal import CofferLibc
internal import Synchronization

/// The thread of this process that waits for changes of files, with one inotify instance for all directories, and calls
/// handlers after a change and after each period.
///
/// The thread, the instance and their descriptors exist only while something is watched, because a user has few
/// instances (128 by default). Thread-safe.
package final class WatchThread: Sendable {
  package typealias Handler = @Sendable () -> Void

  package static let shared = WatchThread()

  private typealias Directory = (watch: Int32, name: String, handler: Handler)
  private typealias Period = (length: Duration, next: ContinuousClock.Instant, handler: Handler)
  /// What the running thread waits on.
  private struct Descriptors: Sendable {
    /// `nil` if the user has no inotify instance left.
    let events: Descriptor?
    let wake: Descriptor

    /// Ends the wait of the thread.
    func signal() { eventfd_write(wake.number, 1) }
  }
  private struct State {
    var descriptors: Descriptors?
    var nextKey = 0
    var directories: [Int: Directory] = [:]
    var periods: [Int: Period] = [:]
    var isIdle: Bool { directories.isEmpty && periods.isEmpty }
  }
  private let state = Mutex(State())

  package init() {}

  /// Whether the thread runs. It ends soon after the last watch is released.
  package var isRunning: Bool { state.withLock { $0.descriptors != nil } }

  /// Whether only periods run, because there was no inotify instance left.
  package var lacksEvents: Bool { state.withLock { $0.descriptors.map { $0.events == nil } ?? false } }

  package var watchCount: Int { state.withLock { $0.directories.count + $0.periods.count } }

  /// Calls `handler` after each change of the file `name` in the open `directory`, until the result is released.
  ///
  /// The handler runs on the thread of all watches, and must not block. Throws the `errno` of inotify_add_watch(2), or
  /// of the failure to start the thread.
  package func watch(
    _ name: String, in directory: Descriptor, _ handler: @escaping Handler
  ) throws(FileSystemError) -> any DirectoryWatch {
    let key = try start { state, descriptors throws(FileSystemError) in
      guard let events = descriptors.events else { throw FileSystemError(EMFILE) }
      let mask = IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB
      let watch = inotify_add_watch(events.number, directory.path, UInt32(mask))
      if watch == -1 { throw FileSystemError(errno) }
      state.nextKey += 1
      state.directories[state.nextKey] = (watch, name, handler)
      return state.nextKey
    }
    return Watch(thread: self, key: key)
  }

  /// Calls `handler` after each `period`, until the result is released. The handler must not block. Throws the `errno`
  /// if the thread could not be started. Works without inotify.
  package func every(_ period: Duration, _ handler: @escaping Handler) throws(FileSystemError)
    -> any AnyObject & Sendable
  {
    let key = try start { state, descriptors throws(FileSystemError) in
      state.nextKey += 1
      state.periods[state.nextKey] = (period, ContinuousClock.now + period, handler)
      descriptors.signal()
      return state.nextKey
    }
    return Watch(thread: self, key: key)
  }

  private final class Watch: DirectoryWatch {
    let thread: WatchThread
    let key: Int

    init(thread: WatchThread, key: Int) { (self.thread, self.key) = (thread, key) }

    deinit { thread.end(key) }

    var isAlive: Bool { thread.state.withLock { $0.directories[key] != nil } }
  }

  private func end(_ key: Int) {
    // A handler can own the last reference to another watch, so it is released outside the lock.
    let released = state.withLock { state in
      let period = state.periods.removeValue(forKey: key)
      let directory = state.directories.removeValue(forKey: key)
      let watched = state.directories.values.map(\.watch)
      if let directory, let events = state.descriptors?.events, !watched.contains(directory.watch) {
        inotify_rm_watch(events.number, directory.watch)
      }
      if state.isIdle { state.descriptors?.signal() }
      return (period, directory)
    }
    withExtendedLifetime(released) {}
  }

  // MARK: The thread

  /// Runs `add` with the descriptors of the thread, which is started if it does not run.
  private func start(_ add: (inout State, Descriptors) throws(FileSystemError) -> Int) throws(FileSystemError) -> Int {
    try state.withLock { state throws(FileSystemError) in
      if let descriptors = state.descriptors { return try add(&state, descriptors) }
      var events: Descriptor?
      do throws(FileSystemError) {
        events = try Descriptor(opened: inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)))
      } catch {
        // Without an instance, the handlers of periods find changes.
      }
      let descriptors = Descriptors(events: events, wake: try Descriptor(opened: coffer_eventfd()))
      let key = try add(&state, descriptors)
      let failure = startThread { self.run(descriptors) }
      if failure != 0 {
        (state.directories, state.periods) = ([:], [:])
        throw FileSystemError(failure)
      }
      state.descriptors = descriptors
      return key
    }
  }

  private func run(_ descriptors: Descriptors) {
    while let timeout = nextTimeout() {
      var waited = [descriptors.events, descriptors.wake].compactMap(\.self).map {
        pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0)
      }
      _ = poll(&waited, nfds_t(waited.count), timeout)
      var count: eventfd_t = 0
      eventfd_read(descriptors.wake.number, &count)
      let changes = descriptors.events?.readEvents() ?? []
      for handler in dueHandlers(after: changes) { handler() }
    }
  }

  /// The milliseconds to the end of the next period, or -1 if there is none. `nil` if nothing is watched: the thread
  /// then counts as ended.
  private func nextTimeout() -> Int32? {
    state.withLock { state in
      if state.isIdle {
        state.descriptors = nil
        return nil
      }
      guard let next = state.periods.values.map(\.next).min() else { return -1 }
      let left = (next - .now) / .milliseconds(1)
      return Int32(max(0, min(left.rounded(.up), 3_600_000)))
    }
  }

  private func dueHandlers(after events: [FileEvent]) -> [Handler] {
    state.withLock { state in
      var handlers: [Handler] = []
      let overflowed = events.contains { $0.isOverflow }
      for (key, directory) in state.directories {
        let own = events.filter { $0.watch == directory.watch }
        if overflowed || own.contains(where: { $0.isEnd || $0.name.elementsEqual(directory.name.utf8) }) {
          handlers.append(directory.handler)
        }
        // The directory is gone, and the kernel has removed the watch.
        if own.contains(where: { $0.isEnd }) { state.directories[key] = nil }
      }
      let now = ContinuousClock.now
      for (key, period) in state.periods where period.next <= now {
        state.periods[key]?.next = now + period.length
        handlers.append(period.handler)
      }
      return handlers
    }
  }
}
