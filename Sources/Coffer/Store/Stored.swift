/// The items of a ``Store`` as a read-only array. `$notes` is the store.
///
/// ```swift
/// @Stored var notes: [Note]
///
/// init(store: Store<Note>) { _notes = Stored(in: store) }
///
/// func add(_ note: Note) async throws { try await $notes.insert(note) }
/// ```
@propertyWrapper
public struct Stored<Item: Codable & Sendable & Equatable>: Sendable {
  private let store: Store<Item>

  /// Creates the property for a store, which may be shared.
  public init(in store: Store<Item>) { self.store = store }

  /// The items in the order of their insertion.
  public var wrappedValue: [Item] { store.items }

  /// The store.
  public var projectedValue: Store<Item> { store }
}
