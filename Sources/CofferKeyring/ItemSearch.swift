#if Keyring
internal import CofferCore

/// Finds items, and unlocks what stands in the way.
struct ItemSearch {
  private let service: SecretServiceProxy
  private let options: KeyringOptions
  private let prompter: Prompter

  init(_ service: SecretServiceProxy, _ options: KeyringOptions, _ prompter: Prompter) {
    self.service = service
    self.options = options
    self.prompter = prompter
  }

  static let locked = SecretError(
    .locked,
    "The keyring is locked, and nobody may be asked for its password.",
    advice: "Unlock it in the desktop session, or run this where a prompt may be shown."
  )

  /// One of several items for one secret. The greater one is the one that counts.
  struct Candidate: Comparable {
    let path: String
    let modified: UInt64
    var metadata = SecretMetadata()

    static func < (left: Candidate, right: Candidate) -> Bool {
      if left.modified != right.modified { return left.modified < right.modified }
      // Paths end in numbers that count up: the longer is the later, and then the greater.
      if left.path.utf8.count != right.path.utf8.count {
        return left.path.utf8.count < right.path.utf8.count
      }
      return left.path.utf8.lexicographicallyPrecedes(right.path.utf8)
    }
  }

  // MARK: Items

  /// The item that is read and updated, or `nil` where there is none.
  func item(_ identifier: SecretIdentifier) throws(ServiceFailure) -> String? {
    let query = ItemAttributes.query(identifier)
    var found = try find(query)
    if found.unlocked.isEmpty {
      if found.locked.isEmpty {
        guard try revealHidden() else { return nil }
      } else {
        try unlock(found.locked)
      }
      found = try find(query)
      if found.unlocked.isEmpty && !found.locked.isEmpty { throw .secret(Self.locked) }
    }
    return try latest(found.unlocked)
  }

  /// All items for a secret, unlocked.
  func allItems(_ identifier: SecretIdentifier) throws(ServiceFailure) -> [String] {
    try readableItems(ItemAttributes.query(identifier))
  }

  /// All items with these attributes, unlocked.
  func readableItems(_ query: [String: String]) throws(ServiceFailure) -> [String] {
    var found = try findNameable(query)
    if !found.locked.isEmpty {
      try unlock(found.locked)
      found = try findNameable(query)
      if !found.locked.isEmpty { throw .secret(Self.locked) }
    } else if found.unlocked.isEmpty, try revealHidden() {
      found = try find(query)
    }
    return found.unlocked
  }

  /// Deletes what other programs left of the secret's old value in the same collection, since they may
  /// still read it there. The store has succeeded by then, and is not made to fail by this.
  func removeShadowed(by item: String, _ identifier: SecretIdentifier) {
    do throws(ServiceFailure) {
      let others = try find(ItemAttributes.query(identifier)).unlocked.filter { $0 != item }
      for other in others where Self.collection(of: other) == Self.collection(of: item) {
        if ItemAttributes.isOnly(identifier, try service.attributes(other)) {
          let prompt = try service.delete(other)
          if prompt != SecretServiceProxy.none {
            _ = try service.call(prompt, SecretServiceProxy.Interface.prompt, "Dismiss")
          }
        }
      }
    } catch {}
  }

  private static func collection(of item: String) -> Substring {
    item[..<(item.lastIndex(of: "/") ?? item.startIndex)]
  }

  private func find(
    _ query: [String: String]
  ) throws(ServiceFailure) -> (unlocked: [String], locked: [String]) {
    guard let name = options.collection else { return try service.search(query) }
    let collection = try self.collection(named: name)
    let items = try service.search(collection: collection, query)
    if items.isEmpty { return ([], []) }
    return try service.isLocked(collection: collection) ? ([], items) : (items, [])
  }

  private func latest(_ items: [String]) throws(ServiceFailure) -> String? {
    if items.count < 2 { return items.first }
    var candidates: [Candidate] = []
    for item in items {
      do throws(ServiceFailure) {
        let modified = try service.property(item, SecretServiceProxy.Interface.item, "Modified").unsigned
        candidates.append(Candidate(path: item, modified: modified ?? 0))
      } catch  where error.isNoSuchObject {}
    }
    return candidates.max()?.path
  }

  /// The same, without the locked items that are no secrets here, where all items were asked for: they
  /// need not be unlocked to make a list.
  private func findNameable(
    _ query: [String: String]
  ) throws(ServiceFailure) -> (unlocked: [String], locked: [String]) {
    var found = try find(query)
    if !query.isEmpty { return found }
    var locked: [String] = []
    for item in found.locked {
      do throws(ServiceFailure) {
        if ItemAttributes.mayBeNamed(try service.attributes(item)) { locked.append(item) }
      } catch  where error.isNoSuchObject {}
    }
    found.locked = locked
    return found
  }

  // MARK: Collections

  /// The collection that is named, else the default one, else `nil`.
  private func collectionIfAny() throws(ServiceFailure) -> String? {
    if let name = options.collection { return try collection(named: name) }
    let path = try service.readAlias("default")
    return path == SecretServiceProxy.none ? nil : path
  }

  /// Where a new item goes: unlocked, and made if there is no default collection yet.
  func collectionForStoring() throws(ServiceFailure) -> String {
    guard let collection = try collectionIfAny() else { return try makeDefaultCollection() }
    if try service.isLocked(collection: collection) {
      try unlock([collection])
      if try service.isLocked(collection: collection) { throw .secret(Self.locked) }
    }
    return collection
  }

  /// A service may not tell of the items in a locked collection. So where nothing was found, and the
  /// collection is locked and seems to be empty, it is unlocked. `true`: look again.
  private func revealHidden() throws(ServiceFailure) -> Bool {
    guard let collection = try collectionIfAny() else { return false }
    guard try service.isLocked(collection: collection) else { return false }
    let items = try service.property(collection, SecretServiceProxy.Interface.collection, "Items").strings
    if !items.isEmpty { return false }
    try unlock([collection])
    return true
  }

  private func collection(named name: String) throws(ServiceFailure) -> String {
    let alias = try service.readAlias(name)
    if alias != SecretServiceProxy.none { return alias }
    for path in try service.collections() {
      let label = try service.property(path, SecretServiceProxy.Interface.collection, "Label").string
      if label?.utf8.elementsEqual(name.utf8) ?? false { return path }
    }
    throw .secret(
      SecretError(
        .configuration,
        "The keyring has no collection named “\(name)”.",
        advice: "Name an existing one, or none for the default."
      )
    )
  }

  private func makeDefaultCollection() throws(ServiceFailure) -> String {
    let refusal = SecretError(
      .locked,
      "There is no default keyring yet, and nobody may be asked for a password for a new one.",
      advice: "Make one in the desktop session, or use a vault: run secret init."
    )
    let made = try service.createCollection(label: "Default keyring", alias: "default")
    if made.prompt == SecretServiceProxy.none { return made.collection }
    let result = try prompter.ask(made.prompt, of: service, orThrow: refusal)
    guard let path = result.string, path != SecretServiceProxy.none else { throw .malformed }
    return path
  }

  /// Unlocks items or collections, with a prompt if there must be one.
  private func unlock(_ paths: [String]) throws(ServiceFailure) {
    let prompt = try service.unlock(paths)
    if prompt != SecretServiceProxy.none { _ = try prompter.ask(prompt, of: service, orThrow: Self.locked) }
  }
}
#endif
