internal import Synchronization

/// Changes to a ``Store`` that are made together: nothing happens until `run()`, and it happens once, in one
/// transaction.
///
/// ```swift
/// try await store.removeAll().insert(fresh).run()
/// ```
public struct StoreOperation<Item: Codable & Sendable & Equatable>: Sendable {
  enum Step: Sendable {
    case insert([Item])
    case remove([Item])
    case removeAll
  }
  private final class Progress: Sendable { let hasRun = Atomic(false) }

  private let store: Store<Item>
  private let steps: [Step]
  private let progress = Progress()

  init(_ store: Store<Item>, _ steps: [Step]) { (self.store, self.steps) = (store, steps) }

  /// The same operation, and then the insertion of an item.
  public func insert(_ item: Item) -> StoreOperation { insert([item]) }

  /// The same operation, and then the insertion of items.
  public func insert(_ items: [Item]) -> StoreOperation { StoreOperation(store, steps + [.insert(items)]) }

  /// The same operation, and then the removal of an item.
  public func remove(_ item: Item) -> StoreOperation { remove([item]) }

  /// The same operation, and then the removal of items.
  public func remove(_ items: [Item]) -> StoreOperation { StoreOperation(store, steps + [.remove(items)]) }

  /// The same operation, and then the removal of all items.
  public func removeAll() -> StoreOperation { StoreOperation(store, steps + [.removeAll]) }

  /// Makes the changes, on another thread. Does nothing if the operation has run. Throws the errors of the backend, and
  /// then nothing is changed if the backend has transactions; the operation can run again.
  public func run() async throws {
    if progress.hasRun.exchange(true, ordering: .acquiringAndReleasing) { return }
    do {
      try await store.perform(steps)
    } catch {
      progress.hasRun.store(false, ordering: .releasing)
      throw error
    }
  }
}
