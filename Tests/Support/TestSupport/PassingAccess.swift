package import CofferCore

/// A backend or a transaction that passes calls on to another one: those that have no default, unless it has its own
/// method for them.
package protocol PassingAccess: SecretAccess {
  var base: any SecretAccess { get }
}

extension PassingAccess {
  package func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try base.secret(identifier)
  }
  package func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try base.items(inService: service)
  }
  package func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try base.store(value, for: identifier, metadata: metadata, history: history)
  }
  package func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try base.remove(identifier, history: history)
  }
}

/// A backend without optional capabilities.
package final class PlainBackend: SecretBackend, PassingAccess {
  private let memory = MemoryBackend()
  package var base: any SecretAccess { memory }
  package init() {}
}
