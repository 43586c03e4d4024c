internal import CofferCore

/// The key by which the items of a ``Store`` are sorted.
struct StoreKey: Comparable {
  let order: String
  let identifier: SecretIdentifier

  static func < (left: Self, right: Self) -> Bool {
    left.order == right.order ? left.identifier < right.identifier : left.order < right.order
  }
}

/// The items of a ``Store`` in memory, in their order.
struct StoreContents<Item: Sendable & Equatable> {
  struct Entry {
    let key: StoreKey
    let item: Item

    var identifier: SecretIdentifier { key.identifier }
  }

  private(set) var entries: [Entry] = []
  /// The items of the entries, which are read more often than changed.
  private(set) var items: [Item] = []
  /// The order of each entry. The order and the identifier determine the entry's place.
  private var orders: [SecretIdentifier: String] = [:]
  /// The secrets that do not decode as items. They stay stored.
  var failures: [SecretIdentifier: SecretError] = [:]

  init(_ entries: [Entry] = [], failures: [SecretIdentifier: SecretError] = [:]) {
    let keys = entries.map(\.key)
    // Sorts only the keys: sorting the entries, which are generic, is slow.
    self.entries = keys.indices.sorted { keys[$0] < keys[$1] }.map { entries[$0] }
    self.failures = failures
    items = self.entries.map(\.item)
    orders.reserveCapacity(entries.count)
    for entry in entries { orders[entry.identifier] = entry.key.order }
  }

  func entry(_ identifier: SecretIdentifier) -> Entry? { index(identifier).map { entries[$0] } }

  func only(_ identifier: SecretIdentifier) -> StoreContents {
    StoreContents([entry(identifier)].compactMap(\.self))
  }

  /// Adds an entry at its place, or replaces the entry with the same identifier.
  mutating func put(_ entry: Entry) {
    failures[entry.identifier] = nil
    if let index = index(entry.identifier) {
      if entries[index].key == entry.key {
        entries[index] = entry
        items[index] = entry.item
        return
      }
      remove([entry.identifier])
    }
    // A new entry nearly always belongs at the end.
    let isLast = entries.last.map { $0.key < entry.key } ?? true
    let place = isLast ? entries.count : place(entry.key)
    entries.insert(entry, at: place)
    items.insert(entry.item, at: place)
    orders[entry.identifier] = entry.key.order
  }

  mutating func remove(_ identifiers: Set<SecretIdentifier>) {
    if !failures.isEmpty { for identifier in identifiers { failures[identifier] = nil } }
    // Each single removal moves the entries after it.
    if identifiers.count < 8 {
      for index in identifiers.compactMap({ index($0) }).sorted(by: >) {
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
    orders[identifier].map { place(StoreKey(order: $0, identifier: identifier)) }
  }

  /// The first index whose entry is not before `key`.
  private func place(_ key: StoreKey) -> Int { entries.partitioningIndex { !($0.key < key) } }
}
