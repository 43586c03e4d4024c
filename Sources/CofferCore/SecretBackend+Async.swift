internal import Dispatch

/// The same calls for `async` code. Each call runs on a thread outside the cooperative pool, because a keyring
/// can show a prompt for minutes. Cancelling the task does not end the call.
extension SecretBackend {
  /// Returns the secret's bytes, or `nil` if there is no such secret.
  public func lookUp(_ identifier: SecretIdentifier) async throws(SecretError) -> SecretBytes? {
    let secret = try await offPool { () throws(SecretError) -> SharedSecret? in
      guard let secret = try self.lookUp(identifier) else { return nil }
      return SharedSecret(secret)
    }
    return secret?.bytes.copy()
  }

  /// Stores `secret` in place of the one that was there.
  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata? = nil
  ) async throws(SecretError) {
    let secret = SharedSecret(secret.copy())
    try await offPool { () throws(SecretError) in
      try self.store(secret.bytes, for: identifier, metadata: metadata)
    }
  }

  /// Removes the secret. Returns `false` if there was none.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier) async throws(SecretError) -> Bool {
    try await offPool { () throws(SecretError) in try self.remove(identifier) }
  }

  /// The names and metadata of the secrets in `service`, or of all if it is `nil`, sorted by identifier.
  public func items(inService service: String?) async throws(SecretError) -> [SecretItem] {
    try await offPool { () throws(SecretError) in try self.items(inService: service) }
  }

  /// The name and metadata of one secret, or `nil` if there is no such secret.
  public func item(_ identifier: SecretIdentifier) async throws(SecretError) -> SecretItem? {
    try await offPool { () throws(SecretError) in try self.item(identifier) }
  }
}

private let calls = DispatchQueue(label: "coffer.calls", attributes: .concurrent)

private func offPool<R: Sendable>(
  _ body: @escaping @Sendable () throws(SecretError) -> R
) async throws(SecretError) -> R {
  let result: Result<R, SecretError> = await withCheckedContinuation { continuation in
    calls.async {
      do throws(SecretError) {
        continuation.resume(returning: .success(try body()))
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
  }
  return try result.get()
}
