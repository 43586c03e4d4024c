public import CofferCore

/// A stored value that can be changed in place, with methods for properties, flags, arrays and dictionaries.
///
/// Each method reads, changes and stores the value in one step for the threads of this process, and for other processes
/// if the backend has transactions. If the value cannot be read or decoded, the method throws and stores nothing.
public protocol EditableValue<Content>: Sendable {
  /// The type of the value.
  associatedtype Content: Sendable

  /// Changes the content and returns the result of `change`, which gets `nil` if there is no content, and may run
  /// several times. Stores nothing if the content stays the same. Throws the backend's errors, `.decodingFailed` and
  /// `.encodingFailed`, and `.conflict` after 1000 attempts.
  func edit<R>(_ change: (inout Content?) -> R) throws(SecretError) -> R
}

extension EditableValue {
  /// Sets one property of the value and returns `true`. Returns `false` and stores nothing if there is no value. Throws
  /// like ``edit(_:)``.
  @discardableResult
  public func set<Part>(_ keyPath: WritableKeyPath<Content, Part>, to part: Part) throws(SecretError) -> Bool {
    try edit { value in
      value?[keyPath: keyPath] = part
      return value != nil
    }
  }

  /// Adds an element at the end. An absent value counts as an empty array. Throws like ``edit(_:)``.
  public func append<Element>(_ element: Element) throws(SecretError) where Content == [Element] {
    try edit { $0 = ($0 ?? []) + [element] }
  }

  /// Replaces the first element that equals `element` and returns `true`. Returns `false` and stores nothing if no
  /// element does. Throws like ``edit(_:)``.
  @discardableResult
  public func replace<Element: Equatable>(
    _ element: Element, with replacement: Element
  ) throws(SecretError) -> Bool where Content == [Element] {
    try edit { value in
      guard let index = value?.firstIndex(of: element) else { return false }
      value?[index] = replacement
      return true
    }
  }

  /// Removes every element that equals `element`, or adds `element` at the end if none does. Throws like ``edit(_:)``.
  public func togglePresence<Element: Equatable>(_ element: Element) throws(SecretError)
  where Content == [Element] {
    try edit { value in
      let elements = value ?? []
      let others = elements.filter { $0 != element }
      value = others.count == elements.count ? elements + [element] : others
    }
  }

  /// Sets the dictionary's value for `key`, or removes the key if `element` is `nil`. An absent value counts as an
  /// empty dictionary. A dictionary that becomes empty is stored. Throws like ``edit(_:)``.
  public func update<Key: Hashable, Element>(
    key: Key, value element: Element?
  ) throws(SecretError) where Content == [Key: Element] {
    try edit { value in
      value = value ?? [:]
      value?[key] = element
    }
  }
}

extension EditableValue where Content == Bool {
  /// Changes `true` to `false` and `false` to `true`. An absent value counts as `false`. Throws like ``edit(_:)``.
  public func toggle() throws(SecretError) {
    try edit { $0 = !($0 ?? false) }
  }
}
