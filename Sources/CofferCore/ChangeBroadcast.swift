internal import Synchronization

/// The streams that a backend's `changes()` gave out, and the one call that feeds them all. Thread-safe.
package final class ChangeBroadcast: Sendable {
  private struct Subscribers {
    var next = 0
    var continuations: [Int: AsyncStream<SecretChange>.Continuation] = [:]
  }
  private let subscribers = Mutex(Subscribers())

  package init() {}

  /// Whether anyone listens.
  package var isEmpty: Bool { subscribers.withLock { $0.continuations.isEmpty } }

  /// A stream of what is sent from now on. `onEnd` is called once, when its reader is gone.
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
    // Copied out first: `yield` may run code of the reader's, which may subscribe.
    let continuations = subscribers.withLock { Array($0.continuations.values) }
    for continuation in continuations { continuation.yield(change) }
  }
}
