#if Keyring
internal import CofferCore
internal import CofferLibc

/// Stores a secret: updates its item, or creates one.
struct ItemWriter {
  let search: ItemSearch
  let identifier: SecretIdentifier
  let change: MetadataChange
  /// The lock that a thread of this backend holds during a store.
  let turn: DeadlineLock

  private var service: SecretServiceProxy { search.service }

  func store(_ value: SecretBytes) throws(ServiceFailure) {
    // Unlocks before it takes the lock, because unlocking may show a prompt.
    let collection = try matches().isEmpty ? search.collectionForStoring() : nil
    // Without this lock two stores could each create an item, or one could change an item that the other is creating.
    try turn.withLock(search.options.timeout) { () throws(ServiceFailure) in
      let isHeld = acquireLock()
      defer { if isHeld { service.bus.releaseName(Self.lockName, by: Deadline(after: service.timeout)) } }
      let items = try matches()
      let found = try service.read(items.count > 1 ? FoundItem.properties : ["Attributes", "Label"], of: items)
      if try update(found, to: value) { return }
      let chosen = if let collection { collection } else { try search.collectionForStoring() }
      try create(value, in: chosen, beside: found)
    }
  }

  /// A lock between the processes on one bus: the ownership of this name. The bus releases it when a process ends.
  private static let lockName = "coffer.KeyringStore"

  /// Waits for the lock for at most a call's timeout, and returns whether it is held. A failure is ignored: without the
  /// lock, two processes that store a new secret at the same time may create an item each.
  private func acquireLock() -> Bool {
    let deadline = Deadline(after: search.options.callTimeout)
    do throws(ServiceFailure) {
      while try service.bus.requestName(Self.lockName, by: deadline) == .anotherConnection { usleep(2000) }
      return true
    } catch {
      return false  // the deadline has passed, or a sandbox refuses the name
    }
  }

  /// The unlocked items with this identifier.
  private func matches() throws(ServiceFailure) -> [FoundItem] {
    try search.items(matching: ItemAttributes.queries(identifier), unlockingAll: false)
  }

  /// Updates the secret's item. Returns `false` if no item has the identifier, or if it belongs to several items of
  /// other programs, which must not lose their values.
  private func update(_ found: [FoundItem], to value: SecretBytes) throws(ServiceFailure) -> Bool {
    let candidates = found.count == 1 ? found : found.filter(\.isGeneral)
    guard let item = candidates.max() else { return false }
    let shadowed = try shadowed(by: item, among: found)
    try update(item, to: value, beside: found.filter { $0.path != item.path })
    for other in shadowed {
      // A failure is ignored: the store has already succeeded.
      do throws(ServiceFailure) { try service.delete(other.path, confirmedBy: search.prompter) } catch {}
    }
    return true
  }

  /// The encoded value for `collection`, or `nil` if the value needs no encoding there.
  private func encoded(_ value: SecretBytes, in collection: String) -> SecretBytes? {
    // Most values need no encoding, whatever the collection is.
    if ValueEncoding.encoded(value, by: .strictest) == nil { return nil }
    let process = search.process
    let rule = StorageRule.rule(for: collection, of: process.kind, dataDirectory: process.dataDirectory)
    return ValueEncoding.encoded(value, by: rule)
  }

  private func update(_ item: FoundItem, to value: SecretBytes, beside others: [FoundItem]) throws(ServiceFailure) {
    let encoding = encoded(value, in: String(item.collection))
    let contentType = encoding == nil ? search.contentType(of: item.path) : nil
    let stored = encoding ?? value
    var attributes = ItemAttributes.withoutProviders(item.attributes)
    let metadata = metadata(of: item, beside: others)
    var label = item.label ?? ItemAttributes.label(identifier, metadata)
    // The value is set last: if an earlier call fails, the item still has the old value.
    if let metadata {
      attributes = ItemAttributes.attributes(identifier, metadata, over: item.attributes)
      if !ItemAttributes.areEqual(attributes, ItemAttributes.withoutProviders(item.attributes)) {
        try service.setProperty("Attributes", of: item.path, to: .dictionary(attributes))
      }
      label = ItemAttributes.label(identifier, metadata)
      if label != item.label { try service.setProperty("Label", of: item.path, to: .string(label)) }
    }
    if others.isEmpty && !ItemAttributes.isWithoutUserName(item.attributes)
      && ![.keePassXC, .kWallet].contains(search.process.kind)
    {
      // No other item has these attributes, so `CreateItem` replaces this one: some services write a value to the disk
      // only then. KeePassXC would ask before it replaces the item, and KWallet would lose the time of creation.
      let path = try service.createItem(
        in: String(item.collection), label: label, attributes: attributes, stored, contentType,
        replacing: true, in: search.session(), confirmedBy: search.prompter)
      if path == nil { try requireStored(value) }
    } else {
      try service.setSecret(of: item.path, to: stored, contentType, in: search.session())
      // gnome-keyring sends no signal for `SetSecret`, but sends one when the label is set again. KWallet is left out,
      // because it may then lose the value if it is killed soon. A failure is ignored: the store has already succeeded.
      guard search.process.kind == .gnomeKeyring else { return }
      do throws(ServiceFailure) {
        try service.setProperty("Label", of: item.path, to: .string(label))
      } catch {}
    }
  }

  private func create(_ value: SecretBytes, in collection: String, beside others: [FoundItem]) throws(ServiceFailure) {
    let stored = encoded(value, in: collection) ?? value
    let metadata = metadata(of: nil, beside: others)
    let path = try service.createItem(
      in: collection, label: ItemAttributes.label(identifier, metadata),
      attributes: ItemAttributes.attributes(identifier, metadata, over: nil), stored,
      replacing: others.isEmpty, in: search.session(), confirmedBy: search.prompter)
    if path == nil { try requireStored(value) }
  }

  /// Throws `.io` unless the secret has the value. For a service that did not name the item.
  private func requireStored(_ value: SecretBytes) throws(ServiceFailure) {
    let item = try service.read(FoundItem.difference, of: matches()).max()
    if let item, try search.secret(of: item.path).isEqual(to: value) { return }
    throw .error(
      .io, "The keyring accepted “\(identifier.account)”, but does not have it.",
      advice: "Check which program provides org.freedesktop.secrets on the session bus.", effect: .unknown)
  }

  /// Returns the metadata for `item`, or for a new item.
  ///
  /// A caller has read the metadata of the newest item, and has changed parts of it. The other parts stay as they are
  /// in `item`. An attribute by which another program would take the item for one of `others` is left out.
  private func metadata(of item: FoundItem?, beside others: [FoundItem]) -> SecretMetadata? {
    guard var metadata = change.replacement else { return change.given(over: item?.metadata(of: identifier)) }
    if let newest = others.max(), item.map({ $0 < newest }) ?? true {
      let read = newest.metadata(of: identifier)
      let own = item?.metadata(of: identifier) ?? SecretMetadata()
      if metadata.label == read.label { metadata.label = own.label }
      if metadata.expires == read.expires { metadata.expires = own.expires }
      if metadata.created == read.created { metadata.created = own.created }
      for name in Set(read.attributes.keys).union(own.attributes.keys)
      where metadata.attributes[name] == read.attributes[name] {
        metadata.attributes[name] = own.attributes[name]
      }
    }
    for (name, value) in others.flatMap({ Array($0.distinction) }) where item?.attributes[name] != value {
      if metadata.attributes[name] == value { metadata.attributes[name] = nil }
    }
    return metadata
  }

  // MARK: Outdated items

  /// Returns the items that are outdated when `item` gets a new value: duplicates of it, and items that differ only in
  /// the program or the label and have its value. The programs that stored those would still read the old value.
  private func shadowed(by item: FoundItem, among found: [FoundItem]) throws(ServiceFailure) -> [FoundItem] {
    let alike = found.filter { $0.path != item.path && $0.collection == item.collection && $0.isAlike(item) }
    if alike.allSatisfy({ $0.isDuplicate(of: item) }) { return alike }
    let old = try search.secret(of: item.path)
    var result: [FoundItem] = []
    for other in alike {
      do throws(ServiceFailure) {
        let isOutdated =
          if other.isDuplicate(of: item) { true } else { try search.secret(of: other.path).isEqual(to: old) }
        if isOutdated { result.append(other) }
      } catch  where error.isNoSuchObject {}
    }
    return result
  }
}
#endif
