internal import Dispatch

/// The same calls for `async` code. Each waits on a thread of its own and not on the cooperative pool,
/// because a keyring may wait minutes for a person. Cancelling the task does not end the call.
extension SecretBackend {
  public func lookUp(_ identifier: SecretIdentifier) async throws(SecretError) -> SecretBytes? {
    let box = try await offPool { () throws(SecretError) in Box(try self.lookUp(identifier)) }
    return box.take()
  }

  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata? = nil
  ) async throws(SecretError) {
    let box = Box(secret.copy())
    try await offPool { () throws(SecretError) in
      guard let secret = box.take() else { return }
      try self.store(secret, for: identifier, metadata: metadata)
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier) async throws(SecretError) -> Bool {
    try await offPool { () throws(SecretError) in try self.remove(identifier) }
  }

  public func items(inService service: String?) async throws(SecretError) -> [SecretItem] {
    try await offPool { () throws(SecretError) in try self.items(inService: service) }
  }

  public func item(_ identifier: SecretIdentifier) async throws(SecretError) -> SecretItem? {
    try await offPool { () throws(SecretError) in try self.item(identifier) }
  }
}

/// Carries a noncopyable value through a continuation. Filled once and emptied once, by turns.
private final class Box: @unchecked Sendable {
  private var secret: SecretBytes?
  init(_ secret: consuming SecretBytes?) { self.secret = secret }
  func take() -> SecretBytes? { secret.take() }
}

private let waiting = DispatchQueue(label: "coffer.waiting", attributes: .concurrent)

private func offPool<R: Sendable>(
  _ body: @escaping @Sendable () throws(SecretError) -> R
) async throws(SecretError) -> R {
  let result: Result<R, SecretError> = await withCheckedContinuation { continuation in
    waiting.async {
      do throws(SecretError) {
        continuation.resume(returning: .success(try body()))
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
  }
  return try result.get()
}
