#if Keyring
public import CofferCore
public import FoundationEssentials

/// Secrets in the desktop's keyring: a Secret Service such as GNOME's, through libsecret.
///
/// A secret is an item with the attributes `service` and `username`, which are all that it is looked up
/// by. Python's keyring, go-keyring, keyring-rs and `secret-tool` use the same two, and so share secrets
/// with this. The rules:
///
/// - Looked for in all collections, or in ``KeyringOptions/collection``; created in the default one.
/// - An item that is found is updated in place: its other attributes and its label stay, unless metadata
///   is given.
/// - Where several items match, unlocked ones come before locked ones, and then the one that was modified
///   last is read and updated. The service's times are whole seconds; of two in one second it is the one
///   created later. A store also removes from the same collection what other programs left there of the
///   old value: items of the same two attributes that differ in `application` at most. `remove` removes
///   all that match.
/// - Values that the service would not give back byte for byte are stored as `coffer:base64:` and their
///   base64. They are those with control characters (but tab), a backslash, white space at an end, or
///   bytes that are not UTF-8.
/// - A locked collection is unlocked if that needs no person, or if one may be asked.
///
/// There are no transactions, since the service has none: a store with metadata is several calls, of which
/// the one that sets the value is the last.
///
/// All methods may be called from any thread. They throw `.unavailable` where there is no bus or service,
/// `.timedOut` at a deadline, `.locked` where the keyring is locked and nobody may be asked, and
/// `.promptDismissed` where somebody was and declined.
public final class KeyringBackend: ObservableSecretBackend {
  /// The largest value, in bytes: 1 MiB. The service holds all values in locked memory, and rewrites the
  /// whole collection at each store; gnome-keyring takes 16 MiB before a bus breaks off.
  public static let maximumSecretSize = 1_048_576

  let link: SecretServiceConnection
  let options: KeyringOptions
  let prompter: Prompter
  private let watcher: KeyringWatcher
  private let creation = DeadlineLock()

  /// Does not connect: the first call does. `environment` says where the bus is.
  public init(
    options: KeyringOptions? = nil,
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    let options = options ?? KeyringOptions(environment: environment)
    self.options = options
    link = SecretServiceConnection(environment: environment, options: options)
    prompter = Prompter(options)
    watcher = KeyringWatcher(environment: environment, options: options)
  }

  /// Takes away every prompt that a call of this backend waits for. Those calls throw `.promptDismissed`.
  public func cancelPrompts() { prompter.cancelAll() }

  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    do throws(SecretError) {
      return try link.withService { service throws(ServiceFailure) in
        let search = ItemSearch(service, options, prompter)
        // An item may be removed, or locked again, between the search and the reading.
        for _ in 0..<Self.attempts {
          guard let item = try search.item(identifier) else { return nil }
          do throws(ServiceFailure) {
            return ValueEncoding.decoded(try service.secret(item))
          } catch  where error.isNoSuchObject || error.isLocked {}
        }
        throw Self.contended
      }
    } catch {
      throw error.about(identifier)
    }
  }

  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    try ItemAttributes.validate(metadata)
    if secret.count > Self.maximumSecretSize {
      throw .tooLarge(secret.count, maximum: Self.maximumSecretSize, identifier)
    }
    let payload = ValueEncoding.encoded(secret) ?? secret.copy()
    do throws(SecretError) {
      try link.withService { service throws(ServiceFailure) in
        let search = ItemSearch(service, options, prompter)
        for _ in 0..<Self.attempts {
          do throws(ServiceFailure) {
            if let item = try search.item(identifier) {
              return try update(item, payload, identifier, metadata, service, search)
            }
            return try create(payload, identifier, metadata, service, search)
          } catch  where error.isNoSuchObject || error.isLocked {}
        }
        throw Self.contended
      }
    } catch {
      throw error.about(identifier)
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    // Out here, so that what was deleted counts even if the service stops and the rest runs again.
    var isRemoved = false
    do throws(SecretError) {
      try link.withService { service throws(ServiceFailure) in
        let search = ItemSearch(service, options, prompter)
        // All that are locked are unlocked before the first is deleted.
        for item in try search.allItems(identifier) {
          do throws(ServiceFailure) {
            let prompt = try service.delete(item)
            if prompt != SecretServiceProxy.none {
              _ = try prompter.ask(prompt, of: service, orThrow: ItemSearch.locked)
            }
            isRemoved = true
          } catch  where error.isNoSuchObject {}
        }
      }
    } catch {
      throw error.about(identifier)
    }
    return isRemoved
  }

  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    if let service, service.isEmpty || service.utf8.contains(0) { return [] }
    let query = service.map { [ItemAttributes.service: $0] } ?? [:]
    return try items(matching: query)
      .filter { item in service.map { $0.utf8.elementsEqual(item.identifier.service.utf8) } ?? true }
  }

  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try items(matching: ItemAttributes.query(identifier)).first { $0.identifier == identifier }
  }

  /// Changes by anyone, as the service's signals tell of them. Subscribed when this returns, unless the
  /// service cannot be reached within the deadline for connecting; then it is tried again, and what was
  /// missed is told as a change of everything. Several changes within a moment may be told as one.
  public func changes() -> AsyncStream<SecretChange> { watcher.subscribe() }

  // MARK: Parts

  /// How often a call starts over because somebody else removed or locked what it had found.
  private static let attempts = 4

  private static let contended = ServiceFailure.secret(
    SecretError(.conflict, "Other programs kept changing the secret meanwhile.", advice: "Try again.")
  )

  private func update(
    _ item: String,
    _ payload: borrowing SecretBytes,
    _ identifier: SecretIdentifier,
    _ metadata: SecretMetadata?,
    _ service: SecretServiceProxy,
    _ search: ItemSearch
  ) throws(ServiceFailure) {
    // The value last: until then the old one is there, whatever fails.
    if let metadata {
      let existing = try service.attributes(item)
      let attributes = ItemAttributes.attributes(identifier, metadata, over: existing)
      if !attributes.isSame(as: existing) {
        try service.setProperty(
          item, SecretServiceProxy.Interface.item, "Attributes", .dictionary(attributes))
      }
      let label = ItemAttributes.label(identifier, metadata)
      try service.setProperty(item, SecretServiceProxy.Interface.item, "Label", .string(label))
    }
    try service.setSecret(item, payload)
    tellOthers(item, service)
    search.removeShadowed(by: item, identifier)
  }

  /// gnome-keyring sends no signal for a new value, and one for a label, even if it is the same. Without
  /// it nobody would hear of an update. The store has succeeded by then, and is not made to fail by this.
  private func tellOthers(_ item: String, _ service: SecretServiceProxy) {
    do throws(ServiceFailure) {
      let label = try service.property(item, SecretServiceProxy.Interface.item, "Label")
      try service.setProperty(item, SecretServiceProxy.Interface.item, "Label", label)
    } catch {}
  }

  private func create(
    _ payload: borrowing SecretBytes,
    _ identifier: SecretIdentifier,
    _ metadata: SecretMetadata?,
    _ service: SecretServiceProxy,
    _ search: ItemSearch
  ) throws(ServiceFailure) {
    let collection = try search.collectionForStoring()
    var failure: ServiceFailure?
    do throws(SecretError) {
      // One thread at a time looks again and creates, so that two do not create one each. Of two
      // processes the service lets the second overwrite the first's item.
      try creation.withLock(seconds: 2 * options.callDeadline) { () throws(SecretError) in
        do throws(ServiceFailure) {
          if let item = try search.item(identifier) {
            return try update(item, payload, identifier, metadata, service, search)
          }
          let made = try service.createItem(
            in: collection,
            label: ItemAttributes.label(identifier, metadata),
            attributes: ItemAttributes.attributes(identifier, metadata, over: nil),
            payload
          )
          if made.prompt != SecretServiceProxy.none {
            _ = try prompter.ask(made.prompt, of: service, orThrow: ItemSearch.locked)
          }
        } catch {
          failure = error
        }
      }
    } catch {
      throw .secret(error)
    }
    if let failure { throw failure }
  }

  private func items(matching query: [String: String]) throws(SecretError) -> [SecretItem] {
    try link.withService { service throws(ServiceFailure) in
      let search = ItemSearch(service, options, prompter)
      var found: [SecretIdentifier: ItemSearch.Candidate] = [:]
      for item in try search.readableItems(query) {
        do throws(ServiceFailure) {
          let properties = try service.properties(item, SecretServiceProxy.Interface.item)
          guard let attributes = properties["Attributes"]?.dictionary,
            let identifier = ItemAttributes.identifier(attributes)
          else { continue }
          let modified = properties["Modified"]?.unsigned
          let metadata = ItemAttributes.metadata(
            identifier,
            attributes,
            label: properties["Label"]?.string,
            created: properties["Created"]?.unsigned,
            modified: modified
          )
          let candidate = ItemSearch.Candidate(path: item, modified: modified ?? 0, metadata: metadata)
          if let other = found[identifier], candidate < other { continue }
          found[identifier] = candidate
        } catch  where error.isNoSuchObject {}
      }
      return found.map { SecretItem(identifier: $0.key, metadata: $0.value.metadata) }
        .sorted { $0.identifier < $1.identifier }
    }
  }
}

extension [String: String] {
  /// Equality by bytes, which `==` on strings is not.
  fileprivate func isSame(as other: [String: String]) -> Bool {
    count == other.count
      && allSatisfy { name, value in other[name].map { $0.utf8.elementsEqual(value.utf8) } ?? false }
  }
}
#endif
