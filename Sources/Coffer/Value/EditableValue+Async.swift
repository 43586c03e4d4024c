public import CofferCore

// The methods of `EditableValue` for `async` code. Each call runs on a thread outside the cooperative pool.

extension EditableValue {
  /// Sets one property of the value and returns `true`. Returns `false` and stores nothing if there is no value. Throws
  /// like the method without `async`.
  @discardableResult
  public func set<Part: Sendable>(
    _ keyPath: any WritableKeyPath<Content, Part> & Sendable, to part: Part
  ) async throws(SecretError) -> Bool {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.set(keyPath, to: part) }
  }

  /// Adds an element at the end. An absent value counts as an empty array. Throws like the method without `async`.
  public func append<Element: Sendable>(_ element: Element) async throws(SecretError)
  where Content == [Element] {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.append(element) }
  }

  /// Replaces the first element that equals `element` and returns `true`. Returns `false` and stores nothing if no
  /// element does. Throws like the method without `async`.
  @discardableResult
  public func replace<Element: Equatable & Sendable>(
    _ element: Element, with replacement: Element
  ) async throws(SecretError) -> Bool where Content == [Element] {
    try await DefaultBackend.offPool { () throws(SecretError) in
      try self.replace(element, with: replacement)
    }
  }

  /// Removes every element that equals `element`, or adds `element` at the end if none does. Throws like the method
  /// without `async`.
  public func togglePresence<Element: Equatable & Sendable>(_ element: Element) async throws(SecretError)
  where Content == [Element] {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.togglePresence(element) }
  }

  /// Sets the dictionary's value for `key`, or removes the key if `element` is `nil`. An absent value counts as an
  /// empty dictionary. A dictionary that becomes empty is stored. Throws like the method without `async`.
  public func update<Key: Hashable & Sendable, Element: Sendable>(
    key: Key, value element: Element?
  ) async throws(SecretError) where Content == [Key: Element] {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.update(key: key, value: element) }
  }
}

extension EditableValue where Content == Bool {
  /// Changes `true` to `false` and `false` to `true`. An absent value counts as `false`. Throws like the method without
  /// `async`.
  public func toggle() async throws(SecretError) {
    try await DefaultBackend.offPool { () throws(SecretError) in try self.toggle() }
  }
}
