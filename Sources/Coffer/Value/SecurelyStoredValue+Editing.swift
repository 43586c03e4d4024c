public import CofferCore

// Changes of a part of the value. Each method reads, changes and stores the value in one step for the threads of this
// process, and for other processes if the backend has transactions. If the value cannot be read or decoded, the
// method throws and stores nothing.

extension SecurelyStoredValue {
  /// Sets one property of the value and returns `true`. Returns `false` and stores nothing if there is no value.
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
  /// Changes `true` to `false` and `false` to `true`. An absent value counts as `false`.
  public func toggle() throws(SecretError) {
    try update { !($0 ?? false) }
  }
}

extension SecurelyStoredValue {
  /// Adds an element at the end. An absent value counts as an empty array.
  public func append<Element>(_ element: Element) throws(SecretError) where Value == [Element] {
    try update { ($0 ?? []) + [element] }
  }

  /// Replaces the first element that equals `element` and returns `true`. Returns `false` and stores nothing if no
  /// element does.
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

  /// Removes every element that equals `element`, or adds `element` at the end if none does.
  public func togglePresence<Element: Equatable>(_ element: Element) throws(SecretError)
  where Value == [Element] {
    try update { value in
      let elements = value ?? []
      let others = elements.filter { $0 != element }
      return others.count == elements.count ? elements + [element] : others
    }
  }

  /// Sets the dictionary's value for `key`, or removes the key if `element` is `nil`. An absent value counts as an
  /// empty dictionary. A dictionary that becomes empty is stored.
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
