/// A transaction that asks for each call who gets it: a backend, another transaction, or something in front of them.
struct RoutedAccess: SecretTransaction {
  /// Is called after each call that has changed something.
  var noteChange: () -> Void = {}
  let receiver: (SecretCall) throws(SecretError) -> any SecretAccess

  /// Runs `body` with a transaction on `base`, whose calls throw `.conflict` after `body` has returned.
  static func whileOpen<R, E: Error>(
    _ base: any SecretTransaction, _ body: (any SecretTransaction) throws(E) -> R
  ) throws(E) -> R {
    var isOpen = true
    defer { isOpen = false }
    let access = RoutedAccess { _ throws(SecretError) in
      if isOpen { return base }
      throw SecretError(.conflict, "The transaction has ended.", advice: "Use it only in the closure that receives it.")
    }
    return try body(access)
  }

  /// Runs `body` on a backend without transactions. If it fails, and calls before have changed something, which stays,
  /// the error says so.
  static func inSteps<R, E: Error>(
    on base: any SecretBackend, _ body: (any SecretTransaction) throws(E) -> R
  ) throws(E) -> R {
    var hasChanged = false
    let access = RoutedAccess(noteChange: { hasChanged = true }) { _ throws(SecretError) in base }
    do throws(E) { return try body(access) } catch {
      guard hasChanged, let known = error as? SecretError, known.effect == .none,
        let changed = known.with(.changed) as? E
      else { throw error }
      throw changed
    }
  }

  func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try receiver(.value(identifier)).secret(identifier)
  }

  func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try receiver(.value(identifier)).lookUp(identifier)
  }

  func secret(_ identifier: SecretIdentifier, version: Int) throws(SecretError) -> Secret? {
    try receiver(.value(identifier)).secret(identifier, version: version)
  }

  func forEachSecret(inService service: String?, _ body: (Secret) throws(SecretError) -> Void) throws(SecretError) {
    try receiver(.values(inService: service)).forEachSecret(inService: service, body)
  }

  func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try receiver(.item(identifier)).item(identifier)
  }

  func versions(of identifier: SecretIdentifier) throws(SecretError) -> [SecretVersion] {
    try receiver(.item(identifier)).versions(of: identifier)
  }

  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try receiver(.items(inService: service)).items(inService: service)
  }

  func removedItems(inService service: String?) throws(SecretError) -> [RemovedSecret] {
    try receiver(.items(inService: service)).removedItems(inService: service)
  }

  func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try receiver(.store(identifier)).store(value, for: identifier, metadata: metadata, history: history)
    noteChange()
  }

  func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try noting(receiver(.remove(identifier)).remove(identifier, history: history))
  }

  func erase(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try noting(receiver(.remove(identifier)).erase(identifier))
  }

  func move(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError) {
    try receiver(.move(identifier, to: new)).move(identifier, to: new, replacing: replacing)
    noteChange()
  }

  private func noting(_ hasChanged: Bool) -> Bool {
    if hasChanged { noteChange() }
    return hasChanged
  }
}
