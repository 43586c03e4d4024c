internal import CofferCore

/// The items of a ``Store`` in memory, in their order.
struct StoreContents<Item: Sendable & Equatable> {
  struct Entry {
    let identifier: SecretIdentifier
    /// Orders the entries, and then the identifier does.
    let order: String
    let item: Item

    func isBefore(_ other: Entry) -> Bool {
      order == other.order ? identifier < other.identifier : order < other.order
    }
  }

  private(set) var entries: [Entry] = []
  /// The items of the entries, which are read more often than changed.
  private(set) var items: [Item] = []
  private var indices: [SecretIdentifier: Int] = [:]
  /// The secrets that are no items, which are kept.
  var failures: [SecretIdentifier: SecretError] = [:]

  func entry(_ identifier: SecretIdentifier) -> Entry? { indices[identifier].map { entries[$0] } }

  /// The entry of one secret.
  func only(_ identifier: SecretIdentifier) -> StoreContents {
    var found = StoreContents()
    if let entry = entry(identifier) { found.put(entry) }
    return found
  }

  /// Adds an entry at its place, or replaces the entry with its identifier.
  mutating func put(_ entry: Entry) {
    failures[entry.identifier] = nil
    if let index = indices[entry.identifier] {
      if entries[index].order == entry.order {
        entries[index] = entry
        items[index] = entry.item
        return
      }
      remove([entry.identifier])
    }
    // Nearly always at the end.
    let place = entries.lastIndex { $0.isBefore(entry) }.map { $0 + 1 } ?? 0
    entries.insert(entry, at: place)
    items.insert(entry.item, at: place)
    for index in place..<entries.count { indices[entries[index].identifier] = index }
  }

  mutating func remove(_ identifiers: Set<SecretIdentifier>) {
    for identifier in identifiers { failures[identifier] = nil }
    guard identifiers.contains(where: { indices[$0] != nil }) else { return }
    entries.removeAll { identifiers.contains($0.identifier) }
    items = entries.map(\.item)
    indices = [:]
    for (index, entry) in entries.enumerated() { indices[entry.identifier] = index }
  }
}
