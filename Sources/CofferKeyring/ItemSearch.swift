#if Keyring
internal import CofferCore

/// Finds items and collections for one method of the backend, and unlocks them if that is necessary.
struct ItemSearch {
  let process: ServiceProcess
  let service: SecretServiceProxy
  let options: KeyringOptions
  let prompter: Prompter
  private let deadline: OperationDeadline

  init(
    _ process: ServiceProcess, _ deadline: OperationDeadline, _ options: KeyringOptions, _ prompter: Prompter
  ) {
    self.process = process
    self.deadline = deadline
    self.options = options
    self.prompter = prompter
    service = SecretServiceProxy(
      bus: process.bus, name: process.owner, timeout: options.callTimeout, deadline: deadline)
  }

  /// The session for secrets in messages. The first call opens it.
  func session() throws(ServiceFailure) -> SecretSession { try process.session(deadline) }

  // MARK: Items

  /// Returns the item to read, unlocked, or `nil` if there is none.
  func item(_ identifier: SecretIdentifier) throws(ServiceFailure) -> String? {
    let items = try items(matching: ItemAttributes.query(identifier), unlockingAll: false)
    if items.count < 2 { return items.first }
    return try service.found(items).max()?.path
  }

  /// Returns the items with the attributes in `query`. Locked ones are unlocked first: all of them, or only
  /// if no unlocked item matches.
  func items(
    matching query: [String: String],
    unlockingAll: Bool = true
  ) throws(ServiceFailure) -> [String] {
    if process.kind == .keePassXC { try unlockBeforeSearch() }
    var found = try find(query)
    if !found.unlocked.isEmpty && !(unlockingAll && !found.locked.isEmpty) { return found.unlocked }
    if !found.locked.isEmpty {
      try unlock(found.locked)
    } else if try !unlockUnsearchedCollection() {
      return []
    }
    found = try find(query)
    if !found.locked.isEmpty && (unlockingAll || found.unlocked.isEmpty) { throw .locked }
    return found.unlocked
  }

  /// Returns the secrets among the items with the attributes in `query`, sorted by identifier.
  func secrets(matching query: [String: String]) throws(ServiceFailure) -> [SecretItem] {
    let candidates = try service.found(items(matching: query)).compactMap { item in
      ItemAttributes.identifier(item.attributes).map { ($0, item) }
    }
    return Dictionary(candidates, uniquingKeysWith: max)
      .map { SecretItem(identifier: $0.key, metadata: $0.value.metadata(of: $0.key)) }
      .sorted { $0.identifier < $1.identifier }
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
    // KeePassXC finds nothing if no attribute is given.
    if options.collection == nil, found.unlocked.isEmpty, found.locked.isEmpty { found = try allItems() }
    // A list of all secrets must not unlock items that no identifier can name.
    found.locked = try service.attributes(of: found.locked)
      .filter { ItemAttributes.mayBeNamed($0.attributes) }.map(\.item)
    return found
  }

  private func allItems() throws(ServiceFailure) -> (unlocked: [String], locked: [String]) {
    var found: (unlocked: [String], locked: [String]) = ([], [])
    for collection in try service.collections() {
      let items = try service.items(of: collection)
      if items.isEmpty { continue }
      if try service.isLocked(collection: collection) {
        found.locked += items
      } else {
        found.unlocked += items
      }
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

  /// Unlocks the collection if it is locked and the service does not search it: some services hide the items of a
  /// locked collection, and others do not search them. Returns whether a new search may find more.
  private func unlockUnsearchedCollection() throws(ServiceFailure) -> Bool {
    guard let collection = try collectionIfAny(), try service.isLocked(collection: collection) else {
      return false
    }
    let hasItems = try !service.items(of: collection).isEmpty
    if hasItems {
      // gnome-keyring searches locked collections by hashes of the attributes, so an absent secret needs no password.
      let all = try service.search([:])
      if (all.locked + all.unlocked).contains(where: { $0.hasPrefix(collection + "/") }) { return false }
    }
    try unlock([collection])
    return true
  }

  /// Unlocks a collection if all are locked. KeePassXC would otherwise show its prompt during the search, which then
  /// has no answer within any timeout.
  private func unlockBeforeSearch() throws(ServiceFailure) {
    let collections = try service.collections()
    for collection in collections where try !service.isLocked(collection: collection) { return }
    guard let collection = try collectionIfAny() ?? collections.first else {
      throw .error(
        .locked, "KeePassXC has no open database that programs may use.",
        advice: "Open the database, and choose the group for Secret Service in its settings.")
    }
    try unlock([collection])
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
    guard let path = result?.path ?? created.collection, path != "/" else { throw .malformed }
    return path
  }

  /// Unlocks items or collections, with a prompt if that is necessary.
  private func unlock(_ paths: [String]) throws(ServiceFailure) {
    let prompt = try service.unlock(paths)
    if prompt != nil, process.kind == .kWallet, try areInOpenWallets(paths) {
      try prompter.confirm(prompt, of: service)
    } else {
      try prompter.complete(prompt, of: service)
    }
  }

  /// Whether the wallets of these items or collections are open. KWallet reports the collection of an open wallet as
  /// locked until a prompt was completed, for which it then needs nobody.
  private func areInOpenWallets(_ paths: [String]) throws(ServiceFailure) -> Bool {
    let parts = "/org/freedesktop/secrets/collection/x".split(separator: "/").count
    let collections = Set(paths.map { "/" + $0.split(separator: "/").prefix(parts).joined(separator: "/") })
    for collection in collections {
      let wallet = try service.property("Label", of: collection, .collection).string ?? ""
      if try !service.isOpen(wallet: wallet) { return false }
    }
    return true
  }
}
#endif
