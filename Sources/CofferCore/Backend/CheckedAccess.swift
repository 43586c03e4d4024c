/// A transaction that passes each call, after a check, to a backend or to another transaction.
package struct CheckedAccess: SecretTransaction {
  package enum Call { case lookUp, items, store, remove }

  private let base: any SecretAccess
  private let check: (Call) throws(SecretError) -> Void

  package init(_ base: any SecretAccess, _ check: @escaping (Call) throws(SecretError) -> Void) {
    (self.base, self.check) = (base, check)
  }

  /// Runs `body` with a transaction on `base`, whose calls throw `.conflict` after `body` has returned.
  package static func whileOpen<R, E: Error>(
    _ base: any SecretAccess, _ body: (any SecretTransaction) throws(E) -> R
  ) -> Result<R, E> {
    var isOpen = true
    defer { isOpen = false }
    let access = CheckedAccess(base) { _ throws(SecretError) in
      guard isOpen else {
        throw SecretError(
          .conflict, "The transaction has ended.", advice: "Use it only in the closure that receives it.")
      }
    }
    return Result { () throws(E) in try body(access) }
  }

  package func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try check(.lookUp)
    return try base.secret(identifier)
  }

  package func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try check(.lookUp)
    return try base.lookUp(identifier)
  }

  package func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try check(.items)
    return try base.item(identifier)
  }

  package func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try check(.items)
    return try base.items(inService: service)
  }

  package func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    try check(.lookUp)
    try base.forEachSecret(inService: service, body)
  }

  package func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try check(.store)
    try base.store(value, for: identifier, metadata: metadata, history: history)
  }

  package func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try check(.remove)
    return try base.remove(identifier, history: history)
  }

  package func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try check(.items)
    return try base.versions(of: identifier)
  }

  package func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try check(.lookUp)
    return try base.secret(identifier, version: version)
  }

  package func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try check(.items)
    return try base.removedItems(inService: service)
  }

  package func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try check(.remove)
    return try base.erase(identifier)
  }
}
