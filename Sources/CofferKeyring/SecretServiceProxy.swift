#if Keyring
internal import CofferCore

/// The D-Bus calls of a Secret Service that transfer no secret. Each method makes one call and waits for the
/// answer for at most `timeout`.
///
/// Items, collections and prompts are named by their D-Bus object paths. Source of the protocol: the
/// freedesktop.org Secret Service API, draft 0.2.
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

  let bus: BusConnection
  /// The bus name that is called: the unique name of one process, or the well-known name for any.
  var name = wellKnownName
  let timeout: Duration

  func call(
    _ path: String, _ interface: Interface, _ method: String, _ arguments: [Variant] = []
  ) throws(ServiceFailure) -> Variant {
    try bus.call(name, path: path, interface.rawValue, method, arguments, timeout: timeout)
  }

  // MARK: Properties

  func property(_ name: String, of path: String, _ interface: Interface) throws(ServiceFailure) -> Variant {
    try call(path, .properties, "Get", [.string(interface.rawValue), .string(name)]).element(0, \.unboxed)
  }

  func properties(of path: String, _ interface: Interface) throws(ServiceFailure) -> [String: Variant] {
    try call(path, .properties, "GetAll", [.string(interface.rawValue)]).element(0, \.properties)
  }

  /// Sets a property of an item.
  func setProperty(_ name: String, of item: String, to value: Variant) throws(ServiceFailure) {
    let arguments: [Variant] = [.string(Interface.item.rawValue), .string(name), .boxed(value)]
    _ = try call(item, .properties, "Set", arguments)
  }

  func attributes(of item: String) throws(ServiceFailure) -> [String: String] {
    guard let attributes = try property("Attributes", of: item, .item).dictionary else { throw .malformed }
    return attributes
  }

  func isLocked(collection: String) throws(ServiceFailure) -> Bool {
    guard let isLocked = try property("Locked", of: collection, .collection).boolean else { throw .malformed }
    return isLocked
  }

  func collections() throws(ServiceFailure) -> [String] {
    try property("Collections", of: Self.path, .service).strings
  }

  // MARK: Methods

  /// Returns the items in all collections that have `attributes`.
  func search(
    _ attributes: [String: String]
  ) throws(ServiceFailure) -> (unlocked: [String], locked: [String]) {
    let answer = try call(Self.path, .service, "SearchItems", [.dictionary(attributes)])
    return (try answer.element(0, \.strings), try answer.element(1, \.strings))
  }

  /// Returns the items in `collection` that have `attributes`.
  func search(collection: String, _ attributes: [String: String]) throws(ServiceFailure) -> [String] {
    try call(collection, .collection, "SearchItems", [.dictionary(attributes)]).element(0, \.strings)
  }

  /// Returns the collection with the alias `name`, or `nil` if there is none.
  func collection(aliased name: String) throws(ServiceFailure) -> String? {
    try call(Self.path, .service, "ReadAlias", [.string(name)]).objectPath(0)
  }

  /// Unlocks every item or collection in `paths` that needs no password. Returns the prompt for the others,
  /// or `nil`.
  func unlock(_ paths: [String]) throws(ServiceFailure) -> String? {
    try call(Self.path, .service, "Unlock", [.paths(paths)]).objectPath(1)
  }

  /// Creates a collection. Returns its path, or the prompt that creates it.
  func createCollection(
    label: String, alias: String
  ) throws(ServiceFailure) -> (collection: String?, prompt: String?) {
    let properties = Variant.properties([("\(Interface.collection.rawValue).Label", .string(label))])
    let answer = try call(Self.path, .service, "CreateCollection", [properties, .string(alias)])
    return (try answer.objectPath(0), try answer.objectPath(1))
  }

  /// Deletes `item`. Returns the prompt that must be completed first, or `nil`.
  func delete(_ item: String) throws(ServiceFailure) -> String? {
    try call(item, .item, "Delete").objectPath(0)
  }

  /// Removes a prompt from the screen. A failure is ignored: the prompt or the service is then gone.
  func dismiss(_ prompt: String) {
    do throws(ServiceFailure) { _ = try call(prompt, .prompt, "Dismiss") } catch {}
  }
}
#endif
