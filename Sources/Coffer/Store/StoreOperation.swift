public import CofferCore
internal import CofferLibc
internal import Synchronization

/// Changes to a ``Store`` that `run()` makes together, once, in one transaction.
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
  private final class Progress: Sendable {
    let hasRun = Atomic(false)
    /// Whether another operation has taken over the steps.
    let isContinued = Atomic(false)

    deinit {
      #if DEBUG
      if !hasRun.load(ordering: .relaxed) && !isContinued.load(ordering: .relaxed) {
        let diagnosis = "A chain of changes to a Store was never run: end it with run().\n"
        _ = diagnosis.utf8.span.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
      }
      #endif
    }
  }

  private let store: Store<Item>
  private let steps: [Step]
  private let progress = Progress()

  init(_ store: Store<Item>, _ steps: [Step]) { (self.store, self.steps) = (store, steps) }

  private func followed(by step: Step) -> StoreOperation {
    progress.isContinued.store(true, ordering: .relaxed)
    return StoreOperation(store, steps + [step])
  }

  /// Returns this operation followed by the insertion of an item.
  public func insert(_ item: Item) -> StoreOperation { insert([item]) }

  /// Returns this operation followed by the insertion of items.
  public func insert(_ items: [Item]) -> StoreOperation { followed(by: .insert(items)) }

  /// Returns this operation followed by the removal of an item.
  public func remove(_ item: Item) -> StoreOperation { remove([item]) }

  /// Returns this operation followed by the removal of items.
  public func remove(_ items: [Item]) -> StoreOperation { followed(by: .remove(items)) }

  /// Returns this operation followed by the removal of all items.
  public func removeAll() -> StoreOperation { followed(by: .removeAll) }

  /// Makes the changes, on another thread. Does nothing if the operation has run before. Throws the errors of the
  /// backend. The operation can then run again, and nothing is changed if the backend has transactions.
  public func run() async throws(SecretError) {
    if progress.hasRun.exchange(true, ordering: .acquiringAndReleasing) { return }
    do throws(SecretError) {
      try await store.perform(steps)
    } catch {
      progress.hasRun.store(false, ordering: .releasing)
      throw error
    }
  }
}
