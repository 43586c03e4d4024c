internal import CofferCore

/// The items of a ``Store`` in memory, in their order.
struct StoreContents<Item: Sendable & Equatable> {
  struct Entry {
    let identifier: SecretIdentifier
    /// Orders the entries, and then the identifier does.
    let order: String
    let item: Item

    func isBefore(_ other: Entry) -> Bool { isBefore(other.order, other.identifier) }

    func isBefore(_ order: String, _ identifier: SecretIdentifier) -> Bool {
      self.order == order ? self.identifier < identifier : self.order < order
    }
  }

  private(set) var entries: [Entry] = []
  /// The items of the entries, which are read more often than changed.
  private(set) var items: [Item] = []
  /// The order of each entry. With its identifier, it tells the place of the entry.
  private var orders: [SecretIdentifier: String] = [:]
  /// The secrets that are no items, which are kept.
  var failures: [SecretIdentifier: SecretError] = [:]

  func entry(_ identifier: SecretIdentifier) -> Entry? { index(identifier).map { entries[$0] } }

  /// The entry of one secret.
  func only(_ identifier: SecretIdentifier) -> StoreContents {
    var found = StoreContents()
    if let entry = entry(identifier) { found.put(entry) }
    return found
  }

  /// Adds an entry at its place, or replaces the entry with its identifier.
  mutating func put(_ entry: Entry) {
    failures[entry.identifier] = nil
    if let index = index(entry.identifier) {
      if entries[index].order == entry.order {
        entries[index] = entry
        items[index] = entry.item
        return
      }
      remove([entry.identifier])
    }
    // Nearly always at the end.
    let isLast = entries.last.map { $0.isBefore(entry) } ?? true
    let place = isLast ? entries.count : place(entry.order, entry.identifier)
    entries.insert(entry, at: place)
    items.insert(entry.item, at: place)
    orders[entry.identifier] = entry.order
  }

  mutating func remove(_ identifiers: Set<SecretIdentifier>) {
    for identifier in identifiers { failures[identifier] = nil }
    let found = identifiers.compactMap { index($0) }
    // Each removal of one moves the entries after it.
    if found.count < 8 {
      for index in found.sorted(by: >) {
        entries.remove(at: index)
        items.remove(at: index)
      }
    } else {
      entries.removeAll { identifiers.contains($0.identifier) }
      items = entries.map(\.item)
    }
    for identifier in identifiers { orders[identifier] = nil }
  }

  private func index(_ identifier: SecretIdentifier) -> Int? {
    orders[identifier].map { place($0, identifier) }
  }

  /// The first index whose entry is not before those of `order` and `identifier`.
  private func place(_ order: String, _ identifier: SecretIdentifier) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].isBefore(order, identifier) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}
