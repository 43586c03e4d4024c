public import CofferCore

// Changes to a part of the value. Each reads, changes and stores as one step: between the values of this
// process, and between processes where the backend has transactions. Where the value cannot be read or
// decoded they throw and store nothing.

extension SecurelyStoredValue {
  /// Sets one property of the value. Returns `false`, and stores nothing, where there is no value.
  @discardableResult
  public func set<Part>(_ keyPath: WritableKeyPath<Value, Part>, to part: Part) throws(SecretError) -> Bool {
    try update { value in
      guard var value else { return nil }
      value[keyPath: keyPath] = part
      return value
    }
  }
}

extension SecurelyStoredValue where Value == Bool {
  /// Makes `true` of `false` and `false` of `true`. No value counts as `false`.
  public func toggle() throws(SecretError) {
    try update { !($0 ?? false) }
  }
}

extension SecurelyStoredValue {
  /// Puts the element at the end. No array counts as an empty one.
  public func append<Element>(_ element: Element) throws(SecretError) where Value == [Element] {
    try update { ($0 ?? []) + [element] }
  }

  /// Puts `replacement` in place of the first element that is equal to `element`. Returns `false`, and
  /// stores nothing, where there is none.
  @discardableResult
  public func replace<Element: Equatable>(
    _ element: Element,
    with replacement: Element
  ) throws(SecretError) -> Bool where Value == [Element] {
    try update { value in
      guard var elements = value, let index = elements.firstIndex(of: element) else { return nil }
      elements[index] = replacement
      return elements
    }
  }

  /// Removes every element that is equal to `element`, or puts it at the end where there is none.
  public func togglePresence<Element: Equatable>(_ element: Element) throws(SecretError)
  where Value == [Element] {
    try update { value in
      let elements = value ?? []
      let others = elements.filter { $0 != element }
      return others.count == elements.count ? elements + [element] : others
    }
  }

  /// Sets the dictionary's value for `key`, or takes it out where that is `nil`. No dictionary counts as an
  /// empty one, and one that becomes empty stays.
  public func update<Key: Hashable, Element>(
    key: Key,
    value element: Element?
  ) throws(SecretError) where Value == [Key: Element] {
    try update { value in
      var dictionary = value ?? [:]
      dictionary[key] = element
      return dictionary
    }
  }
}
