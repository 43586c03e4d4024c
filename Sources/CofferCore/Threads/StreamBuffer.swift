internal import Synchronization

/// The elements that a stream's consumer has not taken yet, up to a limit. Thread-safe.
///
/// An `AsyncStream` can limit the number of its elements, but not their size.
package final class StreamBuffer<Element: Sendable>: Sendable {
  private let state = Mutex((elements: Fifo<(element: Element, size: Int)>(), size: 0))
  private let limit: Int
  private let replacement: Element?
  private let signals: AsyncStream<Void>
  private let signal: AsyncStream<Void>.Continuation

  /// A buffer of elements with the total size `limit`. When the elements exceed it, `replacement` replaces all of them.
  /// Without a replacement, the oldest are dropped, and the newest is always kept.
  package init(limit: Int, replacingOldBy replacement: Element? = nil) {
    self.limit = limit
    self.replacement = replacement
    (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Adds an element of `size`, in the unit of the limit.
  package func yield(_ element: Element, size: Int = 1) {
    state.withLock { state in
      state.elements.append((element, size))
      state.size += size
      if state.size <= limit { return }
      if let replacement {
        state.elements = Fifo()
        state.elements.append((replacement, 1))
        state.size = 1
      } else {
        while state.size > limit, state.elements.count > 1, let oldest = state.elements.popFirst() {
          state.size -= oldest.size
        }
      }
    }
    signal.yield()
  }

  private func next() async -> Element? {
    while true {
      let next = state.withLock { state in
        let next = state.elements.popFirst()
        state.size -= next?.size ?? 0
        return next
      }
      if let next { return next.element }
      var iterator = signals.makeAsyncIterator()
      if await iterator.next() == nil, Task.isCancelled { return nil }
    }
  }

  /// The stream of the elements, for one consumer. `onEnd` is called once: when the stream is released, or when the
  /// task that reads it is cancelled.
  package func stream(onEnd: @escaping @Sendable () -> Void) -> AsyncStream<Element> {
    let subscription = Subscription(buffer: self, onEnd: onEnd)
    return AsyncStream { await subscription.buffer.next() }
  }

  /// The object that a stream owns. The stream ends when this object is released.
  private final class Subscription: Sendable {
    let buffer: StreamBuffer
    private let onEnd: @Sendable () -> Void

    init(buffer: StreamBuffer, onEnd: @escaping @Sendable () -> Void) {
      self.buffer = buffer
      self.onEnd = onEnd
    }

    deinit { onEnd() }
  }
}
