public import CofferCore
public import FoundationEssentials

// The methods of `SecurelyStoredValue` for `async` code. Each call runs on a thread outside the cooperative pool,
// because a backend can wait for a disk, a lock or a prompt. Cancelling the task does not end the call.

extension SecurelyStoredValue {
  /// Returns the value, or `nil` if there is none. Throws like the method without `async`.
  public func get() async throws(SecretError) -> Value? {
    try await content.offPool { () throws(SecretError) in try self.get() }
  }

  /// Returns the value. Throws `.missing` if there is none.
  public func required() async throws(SecretError) -> Value {
    try await content.offPool { () throws(SecretError) in try self.required() }
  }

  /// Stores the value in one durable step. `nil` removes the value. Throws like the method without `async`.
  public func set(_ value: Value?, expires: Date? = nil) async throws(SecretError) {
    try await content.offPool { () throws(SecretError) in try self.set(value, expires: expires) }
  }

  /// Stores `value` if the current value equals `expected`, and returns whether it did. `nil` stands for no value.
  /// Throws like the method without `async`.
  public func set(_ value: Value?, ifCurrentIs expected: Value?) async throws(SecretError) -> Bool
  where Value: Equatable {
    try await content.offPool { () throws(SecretError) in
      try self.set(value, ifCurrentIs: expected)
    }
  }

  /// Removes the value. Returns `false` if there is none. Throws like the method without `async`.
  @discardableResult
  public func remove() async throws(SecretError) -> Bool {
    try await content.offPool { () throws(SecretError) in try self.remove() }
  }

  /// Removes the value with its earlier versions. Throws like the method without `async`.
  @discardableResult
  public func erase() async throws(SecretError) -> Bool {
    try await content.offPool { () throws(SecretError) in try self.erase() }
  }

  /// Returns the identifier and the metadata of the value. Throws like the method without `async`.
  public func item() async throws(SecretError) -> SecretItem? {
    try await content.offPool { () throws(SecretError) in try self.item() }
  }

  /// Changes the value in one step, and returns the result of `change`, which may run several times. Throws like the
  /// method without `async`.
  public func update<R: Sendable>(_ change: @escaping @Sendable (inout Value?) throws -> R) async throws -> R {
    try await content.offPool { try self.update(change) }
  }
}

// MARK: Leases

extension SecurelyStoredValue {
  /// Runs `body` while no other task or process has the lease of this value. The wait blocks no thread.
  ///
  /// A lease is a lock between programs that all ask for it. It does not prevent any program from reading or storing
  /// the value. Read the value inside `body`, because another program may have changed it during the wait. Throws what
  /// `body` throws, `.timedOut` if the lease is not free within `timeout`, and `.unsupported` if the backend has no
  /// leases. All backends of this package have them.
  public func withLease<R>(
    timeout: Duration = .seconds(30), isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> sending R
  ) async throws -> sending R {
    try await content.withLease(timeout: timeout, isolation: isolation, body)
  }

  /// Returns the value if it is fresh, and otherwise replaces it by the result of `refresh`, which only one of all
  /// tasks and processes calls at a time.
  ///
  /// ```swift
  /// let token = try await $token.refreshed(unless: { $0.expires > .now }) { old in
  ///   try await api.refresh(old)
  /// }
  /// ```
  ///
  /// The others wait for up to `timeout`, and then get the new value. An absent value is not fresh.
  ///
  /// A login service may accept the old value only once. So, if the new value cannot be stored, storing it is tried
  /// again until `timeout` has passed since the call, while the lease holds, unless a repetition cannot help. Then
  /// ``UnstoredValue`` is thrown, which has the new value. If the value cannot be encoded, `.encodingFailed` is thrown.
  /// If the process ends between the answer of the service and the store, the value is lost. Cancelling the task does
  /// not end the attempts. `refresh` must not use the lease of the same value: it would wait for itself.
  ///
  /// Throws like `withLease` and what `refresh` throws; the old value then stays.
  public func refreshed(
    timeout: Duration = .seconds(30), isolation: isolated (any Actor)? = #isolation,
    unless isFresh: (Value) -> Bool, by refresh: (Value?) async throws -> Value
  ) async throws -> Value {
    let deadline = ContinuousClock.now + timeout
    if let value = try await get(), isFresh(value) { return value }
    return try await withLease(timeout: timeout, isolation: isolation) {
      let current = try await self.get()
      if let current, isFresh(current) { return current }
      let value = try await refresh(current)
      let content = self.content
      try await content.offPool { try content.keepStoring(value, until: deadline) }
      return value
    }
  }
}
