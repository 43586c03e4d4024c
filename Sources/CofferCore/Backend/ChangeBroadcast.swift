internal import Synchronization

/// Sends each change to all streams that a backend's `changes()` returned. Thread-safe.
///
/// A stream keeps up to ``capacity`` changes that were not read. The next one replaces them by one change of all
/// secrets.
package final class ChangeBroadcast: Sendable {
  package static let capacity = 1024

  private let buffers = Mutex<[ObjectIdentifier: StreamBuffer<SecretChange>]>([:])

  package init() {}

  package var isEmpty: Bool { buffers.withLock { $0.isEmpty } }

  /// Returns a stream of the changes from now on. `onEnd` is called once, when the stream is released.
  package func subscribe(onEnd: @escaping @Sendable () -> Void = {}) -> AsyncStream<SecretChange> {
    let buffer = StreamBuffer(limit: Self.capacity, replacingOldBy: SecretChange(nil))
    let key = ObjectIdentifier(buffer)
    buffers.withLock { $0[key] = buffer }
    return buffer.stream { [weak self] in
      _ = self?.buffers.withLock { $0.removeValue(forKey: key) }
      onEnd()
    }
  }

  package func send(_ change: SecretChange) {
    // Outside the lock, because `yield` may run code of the consumer, which may subscribe.
    let current = buffers.withLock { Array($0.values) }
    for buffer in current { buffer.yield(change) }
  }
}
