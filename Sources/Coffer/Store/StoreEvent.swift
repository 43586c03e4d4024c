public import CofferCore

/// What happened to a ``Store``.
public struct StoreEvent<Item: Sendable>: Sendable {
  /// The kind of an event.
  public enum Operation: Hashable, Sendable {
    /// The store was created. Its items are not loaded yet, or could not be loaded: see ``StoreEvent/error``.
    case initialized
    /// The items were loaded.
    case loaded
    /// Items were added or replaced.
    case insert
    /// Items were removed.
    case remove
  }

  /// The kind of the event.
  public let operation: Operation
  /// All items for ``Operation/loaded``, none for ``Operation/initialized``, and otherwise the items that were inserted
  /// or removed.
  public let items: [Item]
  /// Why the items could not be loaded, or `nil`: see ``Store/loadError``.
  public var error: SecretError?
}

extension StoreEvent: Equatable where Item: Equatable {}
