internal import Synchronization

/// Sends each change to all streams that a backend's `changes()` returned. Thread-safe.
package final class ChangeBroadcast: Sendable {
  private struct Subscribers {
    var next = 0
    var continuations: [Int: AsyncStream<SecretChange>.Continuation] = [:]
  }
  private let subscribers = Mutex(Subscribers())

  package init() {}

  /// Whether there are no streams.
  package var isEmpty: Bool { subscribers.withLock { $0.continuations.isEmpty } }

  /// Returns a stream of the changes from now on. `onEnd` is called once, when the stream is released.
  package func subscribe(onEnd: @escaping @Sendable () -> Void = {}) -> AsyncStream<SecretChange> {
    let (stream, continuation) = AsyncStream.makeStream(of: SecretChange.self)
    let key = subscribers.withLock { subscribers in
      subscribers.next += 1
      subscribers.continuations[subscribers.next] = continuation
      return subscribers.next
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.subscribers.withLock { $0.continuations.removeValue(forKey: key) }
      onEnd()
    }
    return stream
  }

  package func send(_ change: SecretChange) {
    // Outside the lock, because `yield` may run code of the consumer, which may subscribe.
    let continuations = subscribers.withLock { Array($0.continuations.values) }
    for continuation in continuations { continuation.yield(change) }
  }
}
