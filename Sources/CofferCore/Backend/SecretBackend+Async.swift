/// The calls of a backend for `async` code. Each call runs on a thread outside the cooperative pool, because a keyring
/// can show a prompt for minutes. At most 64 calls run at a time in one process; more wait in order. Cancelling the
/// task does not end the call. Each call throws what the method without `async` throws.
extension SecretBackend {
  /// Returns the secret's bytes, or `nil` if there is no such secret. Throws an error of the store.
  public func lookUp(_ identifier: SecretIdentifier) async throws(SecretError) -> SecretBytes? {
    let secret = try await CallThreads.shared.call { () throws(SecretError) -> SharedSecret? in
      guard let secret = try self.lookUp(identifier) else { return nil }
      return SharedSecret(secret)
    }
    return secret?.bytes.copy()
  }

  /// Stores `secret`, and replaces any existing secret with that identifier. Throws `.tooLarge`, `.invalidMetadata` or an
  /// error of the store.
  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata? = nil
  ) async throws(SecretError) {
    let secret = SharedSecret(secret.copy())
    try await CallThreads.shared.call { () throws(SecretError) in
      try self.store(secret.bytes, for: identifier, metadata: metadata)
    }
  }

  /// Removes the secret. Returns `false` if there is no such secret. Throws an error of the store.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier) async throws(SecretError) -> Bool {
    try await CallThreads.shared.call { () throws(SecretError) in try self.remove(identifier) }
  }

  /// Removes every secret in `service`, in one step if the backend has transactions. Returns how many there were. Throws an
  /// error of the store.
  @discardableResult
  public func removeAll(inService service: String) async throws(SecretError) -> Int {
    try await CallThreads.shared.call { () throws(SecretError) in try self.removeAll(inService: service) }
  }

  /// Returns the identifiers and metadata of the secrets in `service`, or of all secrets if `service` is `nil`, sorted by
  /// identifier. Throws an error of the store.
  public func items(inService service: String?) async throws(SecretError) -> [SecretItem] {
    try await CallThreads.shared.call { () throws(SecretError) in try self.items(inService: service) }
  }

  /// Returns the identifier and metadata of one secret, or `nil` if there is no such secret. Throws an error of the store.
  public func item(_ identifier: SecretIdentifier) async throws(SecretError) -> SecretItem? {
    try await CallThreads.shared.call { () throws(SecretError) in try self.item(identifier) }
  }
}
