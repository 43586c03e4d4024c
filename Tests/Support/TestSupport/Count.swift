internal import Synchronization

/// A thread-safe counter of calls.
package final class Count: Sendable {
  private let count = Atomic(0)
  package init() {}
  package func add() { count.add(1, ordering: .relaxed) }
  package var value: Int { count.load(ordering: .relaxed) }
}
