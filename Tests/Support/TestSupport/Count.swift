internal import Observation
internal import Synchronization

/// A thread-safe counter of calls.
package final class Count: Sendable {
  private let count = Atomic(0)
  package init() {}

  /// Counts the change that Observation reports for the properties that `read` reads: only the first one.
  package convenience init(observing read: () -> Void) {
    self.init()
    withObservationTracking(read, onChange: { self.add() })
  }

  package func add() { count.add(1, ordering: .relaxed) }
  package var value: Int { count.load(ordering: .relaxed) }
}
