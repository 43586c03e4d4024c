internal import Synchronization

/// Sends each change to all streams that a backend's `changes()` returned. Thread-safe.
///
/// A stream keeps up to ``capacity`` changes that were not read. The next one replaces them by one change of all secrets.
package final class ChangeBroadcast: Sendable {
  /// The number of changes that a stream keeps.
  package static let capacity = 1024

  private struct Subscribers {
    var next = 0
    var buffers: [Int: StreamBuffer<SecretChange>] = [:]
  }
  private let subscribers = Mutex(Subscribers())

  package init() {}

  /// Whether there are no streams.
  package var isEmpty: Bool { subscribers.withLock { $0.buffers.isEmpty } }

  /// Returns a stream of the changes from now on. `onEnd` is called once, when the stream is released.
  package func subscribe(onEnd: @escaping @Sendable () -> Void = {}) -> AsyncStream<SecretChange> {
    let buffer = StreamBuffer(limit: Self.capacity, replacingOldBy: SecretChange(nil))
    let key = subscribers.withLock { subscribers in
      subscribers.next += 1
      subscribers.buffers[subscribers.next] = buffer
      return subscribers.next
    }
    return buffer.stream { [weak self] in
      _ = self?.subscribers.withLock { $0.buffers.removeValue(forKey: key) }
      onEnd()
    }
  }

  package func send(_ change: SecretChange) {
    // Outside the lock, because `yield` may run code of the consumer, which may subscribe.
    let buffers = subscribers.withLock { Array($0.buffers.values) }
    for buffer in buffers { buffer.yield(change) }
  }
}
