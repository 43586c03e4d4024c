#if Keyring
internal import CofferCore

/// The D-Bus calls of a Secret Service. Each call has at most `timeout`, and ends at `deadline` at the latest.
///
/// Items, collections and prompts are named by their D-Bus object paths. Source of the protocol: the freedesktop.org
/// Secret Service API, draft 0.2.
struct SecretServiceProxy: Sendable {
  enum Interface: String {
    case service = "org.freedesktop.Secret.Service"
    case collection = "org.freedesktop.Secret.Collection"
    case item = "org.freedesktop.Secret.Item"
    case prompt = "org.freedesktop.Secret.Prompt"
    case properties = "org.freedesktop.DBus.Properties"
  }

  /// The well-known name that a Secret Service owns.
  static let wellKnownName = "org.freedesktop.secrets"
  private static let path = "/org/freedesktop/secrets"

  /// The largest number of objects in one operation. No keyring is so large, but a hostile service could keep the
  /// caller busy.
  private static let maximumObjects = 50_000

  let bus: BusConnection
  /// The bus name to call: the unique name of one process, or the well-known name, whichever process owns it.
  var name = wellKnownName
  var kind = ServiceKind.other
  let timeout: Duration
  var deadline: Deadline?

  func next() -> Deadline { deadline?.limited(to: timeout) ?? Deadline(after: timeout) }

  func call(
    _ path: String, _ interface: Interface, _ method: String, _ arguments: [Variant] = []
  ) throws(ServiceFailure) -> Variant {
    deadline?.expectAnswers(1)
    defer { deadline?.countAnswer() }
    return try bus.call(name, path: path, interface.rawValue, method, arguments, by: next())
  }

  /// Makes a call of `method` on `path` for each of `arguments`, and returns the answers in the same order.
  private func call(
    _ path: String, _ interface: Interface, _ method: String, each arguments: [Variant]
  ) throws(ServiceFailure) -> [Variant] {
    if arguments.count == 1 { return [try call(path, interface, method, arguments)] }
    var answers: [Int: Variant] = [:]
    deadline?.expectAnswers(arguments.count)
    let calls = arguments.map { (path, method, Variant.tuple([$0])) }
    try bus.call(name, interface.rawValue, each: calls, by: next) { index, answer throws(ServiceFailure) in
      deadline?.countAnswer()
      answers[index] = try answer.get()
    }
    return arguments.indices.compactMap { answers[$0] }
  }

  // MARK: Properties

  /// Returns the property as `type` reads it. Throws `.malformed` if the property has another type.
  func property<Value>(
    _ name: String, of path: String, _ interface: Interface, _ type: (Variant) -> Value?
  ) throws(ServiceFailure) -> Value {
    try call(path, .properties, "Get", [.string(interface.rawValue), .string(name)])
      .element(0) { $0.unboxed.flatMap(type) }
  }

  func properties(of path: String, _ interface: Interface) throws(ServiceFailure) -> [String: Variant] {
    try call(path, .properties, "GetAll", [.string(interface.rawValue)]).element(0, \.properties)
  }

  func setProperty(_ name: String, of item: String, to value: Variant) throws(ServiceFailure) {
    let arguments: [Variant] = [.string(Interface.item.rawValue), .string(name), .boxed(value)]
    _ = try call(item, .properties, "Set", arguments)
  }

  /// Returns those of `items` that still exist, with the properties in `wanted`. Does not ask for known attributes
  /// again. If the service does not let an item be read, throws, or calls `unreadable` and leaves the item out.
  func read(
    _ wanted: Set<String>, of items: [FoundItem], leavingOut unreadable: UnreadableObserver? = nil
  ) throws(ServiceFailure) -> [FoundItem] {
    if items.count > Self.maximumObjects {
      throw .error(
        .io, "The keyring reported \(items.count) items, and \(Self.maximumObjects) is the maximum.",
        advice: "Check which program provides org.freedesktop.secrets on the session bus.")
    }
    // `nil` stands for all properties.
    var questions: [(index: Int, property: String?)] = []
    for (index, item) in items.enumerated() {
      let missing = item.attributes.isEmpty ? wanted : wanted.subtracting(["Attributes"])
      // `GetAll` returns six properties, and for each of them gnome-keyring searches through all of its items.
      let asked: [String?] = missing.count > 1 && kind != .gnomeKeyring ? [nil] : missing.map(Optional.some)
      questions += asked.map { (index, $0) }
    }
    let interface = Variant.string(Interface.item.rawValue)
    let calls = questions.map { index, property in
      (
        items[index].path, property == nil ? "GetAll" : "Get",
        Variant.tuple([interface] + (property.map { [Variant.string($0)] } ?? []))
      )
    }
    deadline?.expectAnswers(questions.count)
    var found = [[String: Variant]?](repeating: [:], count: items.count)
    try bus.call(name, Interface.properties.rawValue, each: calls, by: next) {
      number, answer throws(ServiceFailure) in
      let (index, property) = questions[number]
      deadline?.countAnswer()
      do throws(ServiceFailure) {
        if let property {
          found[index]?[property] = try answer.get().element(0, \.unboxed)
        } else {
          found[index] = try answer.get().element(0, \.properties)
        }
      } catch  where error.isNoSuchObject {
        found[index] = nil
      } catch  where error.isRemote && property != nil && property != "Attributes" {
        // As in an answer to `GetAll`, a property that cannot be read is left out.
      } catch  where error.isRemote && unreadable != nil {
        found[index] = nil
        unreadable?("The keyring's item \(items[index].path)", error.secretError)
      }
    }
    var result: [FoundItem] = []
    for (item, properties) in zip(items, found) {
      guard let properties else { continue }
      let isNew = item.attributes.isEmpty && wanted.contains("Attributes")
      guard let attributes = isNew ? properties["Attributes"]?.dictionary : item.attributes else { throw .malformed }
      result.append(
        FoundItem(
          path: item.path, attributes: attributes, label: properties["Label"]?.string,
          created: properties["Created"]?.unsigned ?? 0, modified: properties["Modified"]?.unsigned ?? 0))
    }
    return result
  }

  func isLocked(collection: String) throws(ServiceFailure) -> Bool {
    try property("Locked", of: collection, .collection, \.boolean)
  }

  func hasUnlocked(_ collections: [String]) throws(ServiceFailure) -> Bool {
    for collection in collections where try !isLocked(collection: collection) { return true }
    return false
  }

  func items(of collection: String) throws(ServiceFailure) -> [FoundItem] {
    try property("Items", of: collection, .collection, \.items)
  }

  func collections() throws(ServiceFailure) -> [String] {
    try property("Collections", of: Self.path, .service, \.paths)
  }

  // MARK: Methods

  /// Returns, for each query, the items of all collections that have the attributes of the query.
  func search(_ queries: [[String: String]]) throws(ServiceFailure) -> [FoundItems] {
    try call(Self.path, .service, "SearchItems", each: queries.map(Variant.dictionary))
      .map { answer throws(ServiceFailure) in
        try FoundItems(unlocked: answer.element(0, \.items), locked: answer.element(1, \.items))
      }
  }

  /// Returns all items in all collections, as far as the service finds them.
  func searchAll() throws(ServiceFailure) -> FoundItems { try search([[:]])[0] }

  /// Returns for each of `queries` the items in `collection` that have its attributes.
  func search(collection: String, _ queries: [[String: String]]) throws(ServiceFailure) -> [[FoundItem]] {
    try call(collection, .collection, "SearchItems", each: queries.map(Variant.dictionary))
      .map { answer throws(ServiceFailure) in try answer.element(0, \.items) }
  }

  /// Returns the collection with the alias or label `name`, and throws `.configuration` if there is none. If `name` is
  /// `nil`, returns the default collection, or `nil` if there is none.
  func collection(named name: String?) throws(ServiceFailure) -> String? {
    let aliased = try call(Self.path, .service, "ReadAlias", [.string(name ?? "default")]).objectPath(0)
    guard aliased == nil, let name else { return aliased }
    for collection in try collections() {
      let label = try property("Label", of: collection, .collection, \.self).string
      if label?.utf8.elementsEqual(name.utf8) ?? false { return collection }
    }
    throw .error(
      .configuration, "The keyring has no collection with the alias or label “\(name)”.",
      advice: "Name an existing collection, or none to use the default collection.")
  }

  /// Unlocks every item or collection in `paths` that needs no password. Returns the prompt for the others, or `nil`.
  func unlock(_ paths: [String]) throws(ServiceFailure) -> String? {
    try call(Self.path, .service, "Unlock", [.paths(paths)]).objectPath(1)
  }

  /// Whether the wallet is open in KWallet. Shows no prompt.
  func isOpen(wallet: String) throws(ServiceFailure) -> Bool {
    for (path, interface) in [
      ("/modules/kwalletd5", "org.kde.KWallet"), ("/modules/kwalletd6", "org.kde.KWallet"),
      ("/ksecretd", "org.kde.KSecretD"),
    ] {
      do throws(ServiceFailure) {
        let answer = try bus.call(name, path: path, interface, "isOpen", [.string(wallet)], by: next())
        return answer[0]?.boolean ?? false
      } catch  where error.isRemote {
        continue  // another daemon of KWallet
      }
    }
    return false
  }

  /// Creates the default collection. Returns its path, or the prompt that creates it.
  func createDefaultCollection() throws(ServiceFailure) -> (collection: String?, prompt: String?) {
    let label = ("\(Interface.collection.rawValue).Label", Variant.string("Default keyring"))
    let arguments = [Variant.properties([label]), .string("default")]
    let answer = try call(Self.path, .service, "CreateCollection", arguments)
    return (try answer.objectPath(0), try answer.objectPath(1))
  }

  /// Deletes `item`, with `prompter` for the prompt if there is one.
  func delete(_ item: String, confirmedBy prompter: Prompter) throws(ServiceFailure) {
    try prompter.confirm(call(item, .item, "Delete").objectPath(0), of: self)
  }

  /// Removes a prompt from the screen. A failure is ignored: the prompt or the service is then gone, or the service
  /// does not answer.
  func dismiss(_ prompt: String) {
    do throws(ServiceFailure) {
      let deadline = Deadline(after: min(timeout, .milliseconds(500)))
      _ = try bus.call(name, path: prompt, Interface.prompt.rawValue, "Dismiss", by: deadline)
    } catch {}
  }

  // MARK: Secrets

  /// Makes the call by which libsecret asks for a session.
  func openSession(_ arguments: [Variant]) throws(ServiceFailure) -> Variant {
    try call(Self.path, .service, "OpenSession", arguments)
  }

  private func transfer(
    _ path: String, _ interface: Interface, _ method: String, _ arguments: [Variant]
  ) throws(ServiceFailure) -> Variant {
    do throws(ServiceFailure) {
      return try call(path, interface, method, arguments)
    } catch {
      // The service might quote the secret.
      throw error.mayBeOfSession ? .session(error.withoutReason) : error.withoutReason
    }
  }

  /// Returns the secret of an item, encrypted for the session with this path.
  func sealedSecret(of item: String, session: String) throws(ServiceFailure) -> Variant? {
    try transfer(item, .item, "GetSecret", [.path(session)])[0]
  }

  /// Returns the values, as they are stored, of those of `items` that exist and are unlocked.
  func secrets(of items: [String], in session: SecretSession) throws(ServiceFailure) -> [String: SecretBytes] {
    let answer = try transfer(Self.path, .service, "GetSecrets", [.paths(items), .path(session.path)])
    var result: [String: SecretBytes] = [:]
    for (item, sealed) in try answer.element(0, \.secrets) {
      result[item] = try session.open(sealed)
    }
    return result
  }

  func setSecret(
    of item: String, to secret: SecretBytes, _ contentType: String?, in session: SecretSession
  ) throws(ServiceFailure) {
    _ = try transfer(item, .item, "SetSecret", [session.seal(secret, contentType)])
  }

  /// Creates an item, with `prompter` for the prompt if there is one. If `replacing`, overwrites an item that has all
  /// of `attributes` instead, if there is one. Returns the item, or `nil` if the service does not name it.
  @discardableResult
  func createItem(
    in collection: String, label: String, attributes: [String: String], _ secret: SecretBytes,
    _ contentType: String? = nil, replacing: Bool, in session: SecretSession, confirmedBy prompter: Prompter
  ) throws(ServiceFailure) -> String? {
    let item = Interface.item.rawValue
    let properties = Variant.properties([
      ("\(item).Label", .string(label)), ("\(item).Attributes", .dictionary(attributes)),
    ])
    let arguments = [properties, session.seal(secret, contentType), .boolean(replacing)]
    let answer = try transfer(collection, .collection, "CreateItem", arguments)
    let path = try answer.objectPath(0)
    let result = try prompter.confirm(answer.objectPath(1), of: self)
    return path ?? result?.path
  }
}
#endif
