package import CofferCore
package import Testing

extension SecretBackend {
  /// Stores a text.
  package func store(
    _ text: String,
    _ identifier: SecretIdentifier,
    _ metadata: SecretMetadata? = nil
  ) throws(SecretError) {
    try store(SecretBytes(copying: text), for: identifier, metadata: metadata)
  }

  package func text(_ identifier: SecretIdentifier) throws(SecretError) -> String? {
    try lookUp(identifier)?.string()
  }
}

/// Expects every method of `backend` to throw an error with `code`, each within 30 seconds.
package func expectEveryCall(
  of backend: any SecretBackend,
  toThrow code: SecretError.Code,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let identifier = try identifier("alice", service: "svc")
  let calls: [(String, () async throws(SecretError) -> Void)] = [
    ("lookUp", { () async throws(SecretError) in _ = try await backend.lookUp(identifier) }),
    (
      "store",
      { () async throws(SecretError) in try await backend.store(SecretBytes(copying: "new"), for: identifier)
      }
    ),
    ("remove", { () async throws(SecretError) in try await backend.remove(identifier) }),
    ("items", { () async throws(SecretError) in _ = try await backend.items(inService: nil) }),
    ("items of a service", { () async throws(SecretError) in _ = try await backend.items(inService: "svc") }),
    ("item", { () async throws(SecretError) in _ = try await backend.item(identifier) }),
  ]
  for (name, call) in calls {
    let start = ContinuousClock.now
    var found: SecretError.Code?
    do throws(SecretError) { try await call() } catch { found = error.code }
    #expect(found == code, "\(name)", sourceLocation: sourceLocation)
    #expect(ContinuousClock.now - start < .seconds(30), "\(name)", sourceLocation: sourceLocation)
  }
}
