import Coffer
import CofferTestSupport
import CofferCore
import Foundation
import Synchronization
import Testing

/// A backend with scripted failures and changes, as a keyring or another process causes them.
final class ScriptedBackend: SecretBackend {
  let store = MemoryBackend()
  private let broadcast = ChangeBroadcast()
  private let script = Mutex(Script())

  struct Script {
    var lookupError: SecretError?
    var storeError: SecretError?
    var removeError: SecretError?
    var lookups = 0
    var lookupsWithoutPrompts = 0
    var watchers = 0
    var watchersEver = 0
    var metadata: [SecretMetadata?] = []
    var keepsNoAttributes = false
    /// Called before a lookup, without the lock.
    var beforeLookup: (@Sendable () -> Void)?
    /// Called once, after the next lookup and before it returns.
    var afterLookup: (@Sendable () -> Void)?
  }

  func edit<R: Sendable>(_ body: @Sendable (inout Script) -> R) -> R { script.withLock { body(&$0) } }
  func afterNextLookup(_ body: @escaping @Sendable () throws -> Void) {
    edit { $0.afterLookup = { #expect(throws: Never.self) { try body() } } }
  }

  var lookups: Int { edit { $0.lookups } }
  var lookupsWithoutPrompts: Int { edit { $0.lookupsWithoutPrompts } }
  var watchers: Int { edit { $0.watchers } }

  var withoutPrompts: any SecretBackend { Quiet(backend: self) }

  private final class Quiet: SecretBackend, PassingAccess {
    let backend: ScriptedBackend
    var base: any SecretAccess { backend }
    init(backend: ScriptedBackend) { self.backend = backend }

    func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
      backend.edit { $0.lookupsWithoutPrompts += 1 }
      return try backend.secret(identifier)
    }
  }

  var features: SecretFeatures { [.changes] }

  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    let (error, before, after) = edit { script in
      script.lookups += 1
      defer { script.afterLookup = nil }
      return (script.lookupError, script.beforeLookup, script.afterLookup)
    }
    before?()
    if let error { throw error }
    let secret = try store.secret(identifier)
    after?()
    return secret
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? { try store.item(identifier) }

  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    let (error, keepsNoAttributes) = edit { script in
      script.metadata.append(metadata.replacement)
      return (script.storeError, script.keepsNoAttributes)
    }
    if let error { throw error }
    var metadata = metadata
    if keepsNoAttributes, var given = metadata.replacement {
      given.attributes = [:]
      metadata = .replace(given)
    }
    try store.store(value, for: identifier, metadata: metadata, history: history)
  }

  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    if let error = edit({ $0.removeError }) { throw error }
    return try store.remove(identifier, history: history)
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try store.items(inService: service)
  }

  func changes() -> AsyncStream<SecretChange> {
    edit { script in
      script.watchers += 1
      script.watchersEver += 1
    }
    return broadcast.subscribe { [weak self] in self?.edit { $0.watchers -= 1 } }
  }

  func report(_ identifier: SecretIdentifier?) { broadcast.send(SecretChange(identifier)) }

  /// Reports a change, and waits until the hub has read the secret again.
  func reportAndWait(_ identifier: SecretIdentifier?) async throws {
    let before = lookups
    report(identifier)
    try await eventually("the hub did not read a changed secret") { self.lookups > before }
  }
}
