import CofferCore

/// Leases, moves, and the store as a whole.
extension BrokenBackend {
  func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    switch fault {
    case .leasesAreNeverFree: nil
    case .leasesExcludeNobody: SecretLease {}
    case .leaseIsForAllNames: try good.tryLease(SecretIdentifier(service: "tests", account: "all"))
    default: try good.tryLease(identifier)
    }
  }

  func move(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError) {
    let secret = try good.secret(identifier)
    switch fault {
    case .moveIgnoresReplacing: try good.move(identifier, to: new, replacing: true)
    case .moveOfNothingSucceeds where secret == nil: return
    case .moveKeepsTheOriginal:
      try good.move(identifier, to: new, replacing: replacing)
      if let secret { try good.store(secret.value, for: identifier, metadata: .replace(secret.metadata)) }
    case .moveLosesMetadata:
      try good.move(identifier, to: new, replacing: replacing)
      if let secret { try good.store(secret.value, for: new, metadata: .replace(SecretMetadata())) }
    default:
      try withTransaction { transaction throws(SecretError) in
        try transaction.move(identifier, to: new, replacing: replacing)
      }
    }
  }

  var withoutPrompts: any SecretBackend { fault == .withoutPromptsIsAnotherStore ? MemoryBackend() : self }

  func close() throws(SecretError) {
    if fault == .closeForgets { for item in try good.items() { try good.erase(item.identifier) } }
  }

  func unlock() throws(SecretError) {
    if fault == .unlockFails { throw SecretError(.locked, "The test says so.") }
  }
}
