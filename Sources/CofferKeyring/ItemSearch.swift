#if Keyring
internal import CofferCore

/// Finds items and collections in one session, and unlocks them if that is necessary.
struct ItemSearch {
  let session: SecretSession
  let options: KeyringOptions
  let prompter: Prompter

  var service: SecretServiceProxy { session.service }

  /// An item that matches a secret. Of several, the greatest one is read and updated.
  private struct Candidate: Comparable {
    let path: String
    let modified: UInt64
    var metadata = SecretMetadata()

    static func < (left: Candidate, right: Candidate) -> Bool {
      if left.modified != right.modified { return left.modified < right.modified }
      // Paths end in a counter: the longer path is the later one, then the greater.
      if left.path.utf8.count != right.path.utf8.count {
        return left.path.utf8.count < right.path.utf8.count
      }
      return left.path.utf8.lexicographicallyPrecedes(right.path.utf8)
    }
  }

  // MARK: Items

  /// Returns the item to read or update, unlocked, or `nil` if there is none.
  func item(_ identifier: SecretIdentifier) throws(ServiceFailure) -> String? {
    let items = try items(matching: ItemAttributes.query(identifier), unlockingAll: false)
    if items.count < 2 { return items.first }
    var candidates: [Candidate] = []
    try forEachExisting(items) { item throws(ServiceFailure) in
      let modified = try service.property("Modified", of: item, .item).unsigned
      candidates.append(Candidate(path: item, modified: modified ?? 0))
    }
    return candidates.max()?.path
  }

  /// Returns the items with the attributes in `query`. Locked ones are unlocked first: all of them, or only
  /// if no unlocked item matches.
  func items(
    matching query: [String: String],
    unlockingAll: Bool = true
  ) throws(ServiceFailure) -> [String] {
    var found = try find(query)
    if !found.unlocked.isEmpty && !(unlockingAll && !found.locked.isEmpty) { return found.unlocked }
    if !found.locked.isEmpty {
      try unlock(found.locked)
    } else if try !unlockSeeminglyEmptyCollection() {
      return []
    }
    found = try find(query)
    if !found.locked.isEmpty && (unlockingAll || found.unlocked.isEmpty) { throw .locked }
    return found.unlocked
  }

  /// Returns the secrets among the items with the attributes in `query`, sorted by identifier.
  func secrets(matching query: [String: String]) throws(ServiceFailure) -> [SecretItem] {
    var candidates: [(SecretIdentifier, Candidate)] = []
    try forEachExisting(items(matching: query)) { item throws(ServiceFailure) in
      let properties = try service.properties(of: item, .item)
      guard let attributes = properties["Attributes"]?.dictionary,
        let identifier = ItemAttributes.identifier(attributes)
      else { return }
      let modified = properties["Modified"]?.unsigned
      let metadata = ItemAttributes.metadata(
        identifier, attributes, label: properties["Label"]?.string,
        created: properties["Created"]?.unsigned, modified: modified)
      candidates.append((identifier, Candidate(path: item, modified: modified ?? 0, metadata: metadata)))
    }
    return Dictionary(candidates, uniquingKeysWith: max)
      .map { SecretItem(identifier: $0.key, metadata: $0.value.metadata) }
      .sorted { $0.identifier < $1.identifier }
  }

  /// Runs `body` for each item, except those that another program has removed since they were found.
  func forEachExisting(
    _ items: [String],
    _ body: (String) throws(ServiceFailure) -> Void
  ) throws(ServiceFailure) {
    for item in items {
      do throws(ServiceFailure) { try body(item) } catch  where error.isNoSuchObject {}
    }
  }

  /// Deletes other programs' items for the same secret in the collection of `item`, because those programs
  /// would otherwise still read the old value. A failure is ignored: the store has succeeded by then.
  func removeShadowed(by item: String, _ identifier: SecretIdentifier) {
    func collection(_ item: String) -> Substring { item[..<(item.lastIndex(of: "/") ?? item.startIndex)] }
    do throws(ServiceFailure) {
      for other in try find(ItemAttributes.query(identifier)).unlocked
      where other != item && collection(other) == collection(item) {
        if ItemAttributes.isOnly(identifier, try service.attributes(of: other)),
          let prompt = try service.delete(other)
        {
          service.dismiss(prompt)
        }
      }
    } catch {}
  }

  private func find(
    _ query: [String: String]
  ) throws(ServiceFailure) -> (unlocked: [String], locked: [String]) {
    var found: (unlocked: [String], locked: [String])
    if let name = options.collection {
      let collection = try self.collection(named: name)
      let items = try service.search(collection: collection, query)
      let isLocked = items.isEmpty ? false : try service.isLocked(collection: collection)
      found = isLocked ? ([], items) : (items, [])
    } else {
      found = try service.search(query)
    }
    if !query.isEmpty { return found }
    // A list of all secrets must not unlock items that no identifier can name.
    let locked = found.locked
    found.locked = []
    try forEachExisting(locked) { item throws(ServiceFailure) in
      if ItemAttributes.mayBeNamed(try service.attributes(of: item)) { found.locked.append(item) }
    }
    return found
  }

  // MARK: Collections

  /// Returns the collection for a new item, unlocked. Creates the default collection if there is none.
  func collectionForStoring() throws(ServiceFailure) -> String {
    guard let collection = try collectionIfAny() else { return try createDefaultCollection() }
    if try service.isLocked(collection: collection) {
      try unlock([collection])
      if try service.isLocked(collection: collection) { throw .locked }
    }
    return collection
  }

  /// Returns the collection in the options, else the default collection, else `nil`.
  private func collectionIfAny() throws(ServiceFailure) -> String? {
    guard let name = options.collection else { return try service.collection(aliased: "default") }
    return try collection(named: name)
  }

  /// Unlocks the collection if it is locked and reports no items: a service may hide the items of a locked
  /// collection. Returns whether a new search may find more.
  private func unlockSeeminglyEmptyCollection() throws(ServiceFailure) -> Bool {
    guard let collection = try collectionIfAny(), try service.isLocked(collection: collection),
      try service.property("Items", of: collection, .collection).strings.isEmpty
    else { return false }
    try unlock([collection])
    return true
  }

  private func collection(named name: String) throws(ServiceFailure) -> String {
    if let collection = try service.collection(aliased: name) { return collection }
    for collection in try service.collections() {
      let label = try service.property("Label", of: collection, .collection).string
      if label?.utf8.elementsEqual(name.utf8) ?? false { return collection }
    }
    throw .error(
      .configuration, "The keyring has no collection with the alias or label “\(name)”.",
      advice: "Name an existing collection, or none to use the default collection.")
  }

  private func createDefaultCollection() throws(ServiceFailure) -> String {
    let created = try service.createCollection(label: "Default keyring", alias: "default")
    let refusal = ServiceFailure.error(
      .locked, "There is no default keyring, and prompts for a new keyring's password are not allowed.",
      advice: "Create a keyring in the desktop session, or use a vault.")
    let result = try prompter.complete(created.prompt, of: service, refusal: refusal)
    guard let path = result?.string ?? created.collection, path != "/" else { throw .malformed }
    return path
  }

  /// Unlocks items or collections, with a prompt if that is necessary.
  private func unlock(_ paths: [String]) throws(ServiceFailure) {
    try prompter.complete(service.unlock(paths), of: service)
  }
}
#endif
