#if Keyring
internal import CofferCore

/// Finds items and collections for one method of the backend, and unlocks them if that is necessary.
struct ItemSearch {
  let process: ServiceProcess
  let deadline: Deadline
  let options: KeyringOptions
  let prompter: Prompter
  let unreadable: UnreadableObserver?
  private let collections = Collections()

  var service: SecretServiceProxy {
    SecretServiceProxy(
      bus: process.bus, name: process.owner, kind: process.kind, timeout: options.callTimeout,
      deadline: deadline)
  }

  /// What this operation knows about collections, so that it asks once.
  private final class Collections {
    var forStoring: String??
    var locked: [String: Bool] = [:]
  }

  /// The session for secrets in messages. The first call opens it.
  func session() throws(ServiceFailure) -> SecretSession { try process.session(by: deadline) }

  /// Returns the secret of an item. The key of a new session is computed while the service reads the secret and while
  /// `body` runs.
  func secret(of item: String, then body: () throws(ServiceFailure) -> Void = {})
    throws(ServiceFailure) -> SecretBytes
  {
    let sealed = try service.sealedSecret(of: item, session: process.sessionPath(by: deadline))
    try body()
    return try session().open(sealed)
  }

  /// Returns the content type of an item's value, which another program may have chosen, or `nil` if it is not known.
  func contentType(of item: String) -> String? {
    if process.kind == .gnomeKeyring { return nil }  // gnome-keyring keeps none
    do throws(ServiceFailure) {
      return try service.sealedSecret(of: item, session: process.sessionPath(by: deadline))?[3]?.string
    } catch { return nil }  // not known; if the service has failed, the next call to it throws
  }

  // MARK: Items

  /// Returns the item to read, unlocked, or `nil` if there is none.
  func item(_ identifier: SecretIdentifier) throws(ServiceFailure) -> FoundItem? {
    let items = try items(matching: ItemAttributes.queries(identifier), unlockingAll: false)
    if items.count < 2 { return items.first }
    return try service.read(FoundItem.difference, of: items).max()
  }

  /// Returns the items with the attributes in one of `queries`: all items, those of a service, or those of an
  /// identifier. Locked ones are unlocked first: all of them, or only if no unlocked item matches.
  func items(matching queries: [[String: String]], unlockingAll: Bool = true) throws(ServiceFailure) -> [FoundItem] {
    if process.kind == .keePassXC { try unlockBeforeSearch() }
    var found = try find(queries)
    if !found.unlocked.isEmpty && !(unlockingAll && !found.locked.isEmpty) { return found.unlocked }
    if !found.locked.isEmpty {
      // KeePassXC's database is unlocked by now: its prompt is about the item.
      let refusal = process.kind == .keePassXC ? Self.refusedAccess : .locked
      try unlock(found.locked.map(\.path), refusal: refusal)
    } else if try !unlockUnsearchedCollection() {
      return []
    }
    found = try find(queries)
    if !found.locked.isEmpty && (unlockingAll || found.unlocked.isEmpty) { throw .locked }
    return found.unlocked
  }

  /// Returns the secret with its metadata, or `nil` if there is none.
  func secret(_ identifier: SecretIdentifier) throws(ServiceFailure) -> SecretItem? {
    try service.read(FoundItem.properties, of: items(matching: ItemAttributes.queries(identifier)))
      .filter { $0.identifier == identifier }.max()
      .map { SecretItem(identifier: identifier, metadata: $0.metadata(of: identifier)) }
  }

  /// Returns the secrets among the items with the attributes in `query`, sorted by identifier.
  func secrets(matching query: [String: String]) throws(ServiceFailure) -> [SecretItem] {
    try newest(matching: query).compactMap { item in
      item.identifier.map { SecretItem(identifier: $0, metadata: item.metadata(of: $0)) }
    }
  }

  /// Returns the items with the attributes in `query`, one for each secret, sorted by identifier.
  func newest(matching query: [String: String]) throws(ServiceFailure) -> [FoundItem] {
    let found = try service.read(FoundItem.properties, of: items(matching: [query]), leavingOut: unreadable)
    let candidates = found.compactMap { item in item.identifier.map { ($0, item) } }
    return Dictionary(candidates, uniquingKeysWith: max).sorted { $0.key < $1.key }.map(\.value)
  }

  /// The largest number of secrets in one message: 64 values of ``KeyringBackend/maximumSecretSize`` take half of the
  /// largest message of D-Bus.
  static let batchSize = 64

  /// Returns the items with the attributes in `query` that ``secrets(matching:)`` leaves out.
  func unlisted(matching query: [String: String]) throws(ServiceFailure) -> [UnlistedItem] {
    let found = try service.read(["Attributes"], of: items(matching: [query]), leavingOut: unreadable)
    let items = Dictionary(grouping: found, by: \.identifier)
    var result: [UnlistedItem] = []
    for (identifier, items) in items where identifier == nil || items.count > 1 {
      let properties = identifier == nil ? ["Label"] : FoundItem.difference
      let items = try service.read(properties, of: items, leavingOut: unreadable)
      let unlisted = identifier == nil ? items[...] : items.different.dropFirst()
      result += unlisted.map { UnlistedItem(title: $0.title, identifier: identifier) }
    }
    return result.sorted {
      ($0.title, $0.identifier?.account ?? "") < ($1.title, $1.identifier?.account ?? "")
    }
  }

  private func find(_ queries: [[String: String]]) throws(ServiceFailure) -> FoundItems {
    let results: [FoundItems]
    if options.collection != nil, let collection = try collectionIfAny() {
      results = try service.search(collection: collection, queries)
        .map { items throws(ServiceFailure) in try byLock(items, of: collection) }
    } else {
      results = try service.search(queries)
    }
    var found = results[0]
    for more in results.dropFirst() {
      found.unlocked += try withoutUserName(more.unlocked, found.unlocked)
      found.locked += try withoutUserName(more.locked, found.locked)
    }
    if queries != [[:]] { return found }
    // KeePassXC finds nothing if no attribute is given.
    if options.collection == nil, found.unlocked.isEmpty, found.locked.isEmpty { found = try allItems() }
    // A list of all secrets must not unlock items that cannot have an identifier.
    found.locked = try service.read(["Attributes"], of: found.locked, leavingOut: unreadable)
      .filter { ItemAttributes.mayBeNamed($0.attributes) }
    return found
  }

  /// Returns those of `items` that are not in `known` and have no attribute `username`.
  private func withoutUserName(_ items: [FoundItem], _ known: [FoundItem]) throws(ServiceFailure) -> [FoundItem] {
    let known = Set(known.map(\.path))
    return try service.read(["Attributes"], of: items.filter { !known.contains($0.path) })
      .filter { ItemAttributes.isWithoutUserName($0.attributes) }
  }

  private func allItems() throws(ServiceFailure) -> FoundItems {
    var found = FoundItems()
    for collection in try service.collections() {
      let more = try byLock(service.items(of: collection), of: collection)
      found.unlocked += more.unlocked
      found.locked += more.locked
    }
    return found
  }

  /// The items of a collection as the result of a search: all of them are locked if the collection is.
  private func byLock(_ items: [FoundItem], of collection: String) throws(ServiceFailure) -> FoundItems {
    if items.isEmpty { return FoundItems() }
    return try isLocked(collection) ? FoundItems(locked: items) : FoundItems(unlocked: items)
  }

  // MARK: Collections

  /// Returns the collection for a new item, unlocked. Creates the default collection if there is none.
  func collectionForStoring() throws(ServiceFailure) -> String {
    guard let collection = try collectionIfAny() else { return try createDefaultCollection() }
    if try isLocked(collection) {
      try unlock([collection])
      if try isLocked(collection) { throw .locked }
    }
    return collection
  }

  private func isLocked(_ collection: String) throws(ServiceFailure) -> Bool {
    if let known = collections.locked[collection] { return known }
    let isLocked = try service.isLocked(collection: collection)
    collections.locked[collection] = isLocked
    return isLocked
  }

  /// Returns the collection in the options, else the default collection, else `nil`.
  private func collectionIfAny() throws(ServiceFailure) -> String? {
    if let known = collections.forStoring { return known }
    let found = try service.collection(named: options.collection)
    collections.forStoring = .some(found)
    return found
  }

  /// Unlocks the collection if it is locked and the service does not search it: some services hide the items of a
  /// locked collection, and others do not search them. Returns whether a new search may find more.
  private func unlockUnsearchedCollection() throws(ServiceFailure) -> Bool {
    guard let collection = try collectionIfAny(), try isLocked(collection) else { return false }
    if try !service.items(of: collection).isEmpty {
      // gnome-keyring searches locked collections by hashes of the attributes, so an absent secret needs no password.
      let all = try service.searchAll()
      if (all.locked + all.unlocked).contains(where: { $0.path.hasPrefix(collection + "/") }) { return false }
    }
    try unlock([collection])
    return true
  }

  /// Unlocks a collection if all are locked. KeePassXC would otherwise show its prompt during the search, which would
  /// then time out.
  private func unlockBeforeSearch() throws(ServiceFailure) {
    let collections = try service.collections()
    if try service.hasUnlocked(collections) { return }
    guard let collection = try collectionIfAny() ?? collections.first else {
      throw .error(
        .locked, "KeePassXC has no open database that programs may use.",
        advice: "Open the database, and choose the group for Secret Service in its settings.")
    }
    try unlock([collection])
  }

  private func createDefaultCollection() throws(ServiceFailure) -> String {
    let created = try service.createDefaultCollection()
    let refusal = ServiceFailure.error(
      .locked, "There is no default keyring, and prompts for a new keyring's password are not allowed.",
      advice: "Create a keyring in the desktop session, or use a vault.")
    let result = try prompter.complete(created.prompt, of: service, refusal: refusal)
    guard let path = result?.path ?? created.collection, path != "/" else { throw .malformed }
    return path
  }

  private static let refusedAccess = ServiceFailure.error(
    .locked, "KeePassXC asks before it gives this secret to a program, and prompts are not allowed.",
    advice:
      "Allow prompts, or change “Confirm when passwords are retrieved by clients” in KeePassXC's settings.")

  /// Unlocks items or collections, with a prompt if that is necessary. `refusal` is thrown if a prompt is not allowed.
  private func unlock(_ paths: [String], refusal: ServiceFailure = .locked) throws(ServiceFailure) {
    collections.locked = [:]
    let prompt = try service.unlock(paths)
    if prompt != nil, process.kind == .kWallet, try areInOpenWallets(paths) {
      try prompter.confirm(prompt, of: service)
    } else {
      try prompter.complete(prompt, of: service, refusal: refusal)
    }
  }

  /// Whether the wallets of these items or collections are open. KWallet reports the collection of an open wallet as
  /// locked until a prompt is completed, and completes that prompt without asking the user.
  private func areInOpenWallets(_ paths: [String]) throws(ServiceFailure) -> Bool {
    let parts = "/org/freedesktop/secrets/collection/x".split(separator: "/").count
    let collections = Set(paths.map { "/" + $0.split(separator: "/").prefix(parts).joined(separator: "/") })
    for collection in collections {
      let wallet = try service.property("Label", of: collection, .collection, \.self).string ?? ""
      if try !service.isOpen(wallet: wallet) { return false }
    }
    return true
  }
}
#endif
