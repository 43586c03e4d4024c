#if Keyring
public import CofferCore
public import FoundationEssentials

/// Stores secrets in the desktop's keyring: a Secret Service, such as GNOME's, through libsecret.
///
/// A secret is an item with the attributes `service` and `username`. A lookup uses these two attributes only.
/// Python's keyring, go-keyring, keyring-rs and `secret-tool` use the same attributes, and so share secrets
/// with this backend.
///
/// - Searches cover all collections, or only ``KeyringOptions/collection``. New items go to that collection,
///   or to the default collection.
/// - A store updates an existing item in place. Its label and other attributes stay, unless the store has
///   metadata.
/// - If several items match, unlocked items come before locked ones. Of those, the item that was modified
///   last is read and updated. The service's times are in whole seconds; within one second, the item that was
///   created last counts.
/// - A store also deletes outdated items of other programs in the same collection: those with the same two
///   attributes and no other attribute except `application`. `remove` deletes all items that match.
/// - A value with a control character other than tab, a backslash, white space at an end, or bytes that are
///   not UTF-8 is stored as `coffer:base64:` and its base64, because services change such values.
/// - A locked collection is unlocked if that needs no password, or if ``KeyringOptions/mayPrompt`` allows a
///   prompt.
///
/// The service has no transactions. A store with metadata makes several calls, and the last one sets the
/// value.
///
/// Methods may be called from any thread. They throw `.unavailable` if the bus or the service cannot be
/// reached, `.timedOut` after a timeout of the options, `.locked` if the keyring is locked and prompts are
/// not allowed, and `.promptDismissed` if a prompt was dismissed.
public final class KeyringBackend: ObservableSecretBackend {
  /// The maximum size of a value in bytes: 1 MiB. The service keeps all values in locked memory and rewrites
  /// the whole collection at each store. gnome-keyring accepts 16 MiB until the bus closes the connection.
  public static let maximumSecretSize = 1_048_576

  private let connection: SecretServiceConnection
  private let options: KeyringOptions
  private let prompter: Prompter
  private let watcher: KeyringWatcher
  private let creation = DeadlineLock()

  /// Creates a backend. The first call connects to the session bus that `environment` names. `nil` stands for
  /// ``KeyringOptions/init(environment:)``.
  public init(
    options: KeyringOptions? = nil,
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    let options = options ?? KeyringOptions(environment: environment)
    self.options = options
    connection = SecretServiceConnection(environment: environment, options: options)
    prompter = Prompter(options)
    watcher = KeyringWatcher(environment: environment, options: options)
  }

  /// Dismisses every prompt that a call of this backend waits for. Those calls throw `.promptDismissed`.
  public func cancelPrompts() { prompter.cancelAll() }

  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try search(for: identifier) { search throws(ServiceFailure) in
      try Self.retrying { () throws(ServiceFailure) -> SecretBytes? in
        guard let item = try search.item(identifier) else { return nil }
        return ValueEncoding.decoded(try search.session.secret(of: item))
      }
    }
  }

  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    try ItemAttributes.validate(metadata)
    try requireStorable(secret, for: identifier, metadata, maximum: Self.maximumSecretSize)
    let value = ValueEncoding.encoded(secret) ?? secret.copy()
    try search(for: identifier) { search throws(ServiceFailure) in
      try Self.retrying { () throws(ServiceFailure) in
        if let item = try search.item(identifier) {
          try update(item, value, identifier, metadata, search)
        } else {
          try create(value, identifier, metadata, search)
        }
      }
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    // Outside the closure, which runs a second time if the service stops after a deletion.
    var isRemoved = false
    try search(for: identifier) { search throws(ServiceFailure) in
      // All locked items are unlocked before the first item is deleted.
      let items = try search.items(matching: ItemAttributes.query(identifier))
      try search.forEachExisting(items) { item throws(ServiceFailure) in
        try prompter.complete(search.service.delete(item), of: search.service)
        isRemoved = true
      }
    }
    return isRemoved
  }

  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    guard let service else { return try secrets(matching: [:]) }
    if service.isEmpty || service.utf8.contains(0) { return [] }
    return try secrets(matching: [ItemAttributes.service: service])
      .filter { $0.identifier.service.utf8.elementsEqual(service.utf8) }
  }

  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try secrets(matching: ItemAttributes.query(identifier)).first { $0.identifier == identifier }
  }

  /// Returns a stream of the changes that the service's signals report, made by any program.
  ///
  /// The subscription is in force when this returns, unless the service cannot be reached within
  /// ``KeyringOptions/connectTimeout``. The backend then tries again, and reports a change of everything once
  /// it has connected. Changes within 20 milliseconds may be reported as one.
  public func changes() -> AsyncStream<SecretChange> { watcher.subscribe() }

  // MARK: Sessions

  private func search<R: ~Copyable>(
    for identifier: SecretIdentifier,
    _ body: (ItemSearch) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R {
    do throws(SecretError) {
      return try connection.withSession { session throws(ServiceFailure) in
        try body(ItemSearch(session: session, options: options, prompter: prompter))
      }
    } catch {
      throw error.about(identifier)
    }
  }

  private func secrets(matching query: [String: String]) throws(SecretError) -> [SecretItem] {
    try connection.withSession { session throws(ServiceFailure) in
      try ItemSearch(session: session, options: options, prompter: prompter).secrets(matching: query)
    }
  }

  /// Runs `body` up to four times, because another program may remove or lock an item after it was found.
  private static func retrying<R: ~Copyable>(
    _ body: () throws(ServiceFailure) -> R
  ) throws(ServiceFailure) -> R {
    for _ in 0..<4 {
      do throws(ServiceFailure) { return try body() } catch  where error.isNoSuchObject || error.isLocked {}
    }
    throw .error(
      .conflict, "Other programs changed the secret during each of four attempts.",
      advice: "Try again.")
  }

  // MARK: Items

  private func update(
    _ item: String, _ value: borrowing SecretBytes, _ identifier: SecretIdentifier,
    _ metadata: SecretMetadata?, _ search: ItemSearch
  ) throws(ServiceFailure) {
    // The value is set last: if an earlier call fails, the item still has the old value.
    if let metadata {
      let existing = try search.service.attributes(of: item)
      let attributes = ItemAttributes.attributes(identifier, metadata, over: existing)
      if !ItemAttributes.areEqual(attributes, existing) {
        try search.service.setProperty("Attributes", of: item, to: .dictionary(attributes))
      }
      let label = ItemAttributes.label(identifier, metadata)
      try search.service.setProperty("Label", of: item, to: .string(label))
    }
    try search.session.setSecret(of: item, to: value)
    announceChange(of: item, search.service)
    search.removeShadowed(by: item, identifier)
  }

  /// Sets the label of `item` to itself. gnome-keyring sends no signal for a new value, but sends one for a
  /// label. A failure is ignored: the store has succeeded by then.
  private func announceChange(of item: String, _ service: SecretServiceProxy) {
    do throws(ServiceFailure) {
      try service.setProperty("Label", of: item, to: service.property("Label", of: item, .item))
    } catch {}
  }

  private func create(
    _ value: borrowing SecretBytes, _ identifier: SecretIdentifier, _ metadata: SecretMetadata?,
    _ search: ItemSearch
  ) throws(ServiceFailure) {
    let collection = try search.collectionForStoring()
    // Threads search and create one at a time, so that two threads do not create an item each. If two
    // processes create the same item, the service overwrites the first one.
    try creation.withLock(options.callTimeout * 2) { () throws(ServiceFailure) in
      if let item = try search.item(identifier) {
        return try update(item, value, identifier, metadata, search)
      }
      let prompt = try search.session.createItem(
        in: collection, label: ItemAttributes.label(identifier, metadata),
        attributes: ItemAttributes.attributes(identifier, metadata, over: nil), value)
      try prompter.complete(prompt, of: search.service)
    }
  }
}
#endif
