package import CofferCore
package import Testing

extension SecretBackend {
  package func store(
    _ text: String,
    _ identifier: SecretIdentifier,
    _ metadata: SecretMetadata? = nil
  ) throws(SecretError) {
    try store(SecretBytes(text), for: identifier, metadata: metadata.map { .replace($0) } ?? .newValue)
  }

  package func text(_ identifier: SecretIdentifier) throws(SecretError) -> String? {
    try lookUp(identifier)?.string()
  }
}

extension SecretAccess {
  /// Stores a value with the given metadata. `nil`: the present metadata stays.
  package func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try store(value, for: identifier, metadata: metadata.map { .replace($0) } ?? .keep)
  }
}

extension SecretBackend {
  /// Stores a value, and erases the earlier ones in the same change. The metadata stays, or is replaced.
  package func storeWithoutHistory(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    try withTransaction { transaction throws(SecretError) in
      let existing = try transaction.item(identifier)?.metadata
      try transaction.erase(identifier)
      var kept = metadata ?? existing ?? SecretMetadata()
      kept.created = existing?.created ?? kept.created
      try transaction.store(value, for: identifier, metadata: .replace(kept))
    }
  }
}

/// Expects every method of `backend` to throw an error with `code`, each within 30 seconds.
package func expectEveryCall(
  of backend: any SecretBackend,
  toThrow code: SecretError.Code,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let identifier = try identifier("alice", service: "svc")
  let calls: [(name: String, body: @Sendable () throws(SecretError) -> Void)] = [
    ("lookUp", { () throws(SecretError) in _ = try backend.lookUp(identifier) }),
    ("store", { () throws(SecretError) in try backend.store("new", identifier) }),
    ("remove", { () throws(SecretError) in try backend.remove(identifier) }),
    ("items", { () throws(SecretError) in _ = try backend.items(inService: nil) }),
    ("items of a service", { () throws(SecretError) in _ = try backend.items(inService: "svc") }),
    ("item", { () throws(SecretError) in _ = try backend.item(identifier) }),
  ]
  // On a thread outside the pool of the tests: the calls block, and other tests must not add to the times.
  let outcomes = await CallThreads.shared.run {
    calls.map { call in
      let start = ContinuousClock.now
      return (error: thrown(call.body), time: ContinuousClock.now - start)
    }
  }
  for (call, outcome) in zip(calls, outcomes) {
    #expect(outcome.error?.code == code, "\(call.name)", sourceLocation: sourceLocation)
    #expect(outcome.time < .seconds(30), "\(call.name)", sourceLocation: sourceLocation)
  }
}
