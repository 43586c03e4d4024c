#if Keyring
internal import CofferCore

/// One running Secret Service, and the calls of its protocol that are needed: each is one call, with the
/// deadline for calls.
///
/// The protocol is the freedesktop.org Secret Service API, draft 0.2.
final class SecretServiceProxy: Sendable {
  static let name = "org.freedesktop.secrets"
  static let path = "/org/freedesktop/secrets"
  /// The path that stands for none.
  static let none = "/"

  enum Interface {
    static let service = "org.freedesktop.Secret.Service"
    static let collection = "org.freedesktop.Secret.Collection"
    static let item = "org.freedesktop.Secret.Item"
    static let prompt = "org.freedesktop.Secret.Prompt"
    static let properties = "org.freedesktop.DBus.Properties"
  }

  let bus: BusConnection
  /// The unique name of the process that is the service.
  let owner: String
  let session: SecretSession
  private let seconds: Double

  init(_ bus: BusConnection, owner: String, session: SecretSession, callDeadline: Double) {
    self.bus = bus
    self.owner = owner
    self.session = session
    seconds = callDeadline
  }

  func call(
    _ path: String,
    _ interface: String,
    _ method: String,
    _ arguments: [Variant] = []
  ) throws(ServiceFailure) -> Variant {
    try bus.call(owner, path: path, interface, method, arguments, seconds: seconds)
  }

  // MARK: Properties

  func property(_ path: String, _ interface: String, _ name: String) throws(ServiceFailure) -> Variant {
    let answer = try call(path, Interface.properties, "Get", [.string(interface), .string(name)])
    return try required(answer[0]?.unboxed)
  }

  func properties(_ path: String, _ interface: String) throws(ServiceFailure) -> [String: Variant] {
    try required(call(path, Interface.properties, "GetAll", [.string(interface)])[0]?.properties)
  }

  func setProperty(_ path: String, _ interface: String, _ name: String, _ value: Variant)
    throws(ServiceFailure)
  {
    _ = try call(path, Interface.properties, "Set", [.string(interface), .string(name), .boxed(value)])
  }

  func attributes(_ item: String) throws(ServiceFailure) -> [String: String] {
    try required(property(item, Interface.item, "Attributes").dictionary)
  }

  func isLocked(collection: String) throws(ServiceFailure) -> Bool {
    try required(property(collection, Interface.collection, "Locked").boolean)
  }

  // MARK: Service

  /// The items in all collections that have `attributes`.
  func search(
    _ attributes: [String: String]
  ) throws(ServiceFailure) -> (unlocked: [String], locked: [String]) {
    let answer = try call(Self.path, Interface.service, "SearchItems", [.dictionary(attributes)])
    return (try required(answer[0]).strings, try required(answer[1]).strings)
  }

  /// Unlocks what can be unlocked without a person. The path is that of a prompt for the rest, or none.
  func unlock(_ paths: [String]) throws(ServiceFailure) -> String {
    try required(call(Self.path, Interface.service, "Unlock", [.paths(paths)])[1]?.string)
  }

  func readAlias(_ name: String) throws(ServiceFailure) -> String {
    try required(call(Self.path, Interface.service, "ReadAlias", [.string(name)])[0]?.string)
  }

  func collections() throws(ServiceFailure) -> [String] {
    try property(Self.path, Interface.service, "Collections").strings
  }

  func createCollection(
    label: String,
    alias: String
  ) throws(ServiceFailure) -> (collection: String, prompt: String) {
    let properties = Variant.properties([("\(Interface.collection).Label", .string(label))])
    let answer = try call(Self.path, Interface.service, "CreateCollection", [properties, .string(alias)])
    return (try required(answer[0]?.string), try required(answer[1]?.string))
  }

  // MARK: Collection

  func search(collection: String, _ attributes: [String: String]) throws(ServiceFailure) -> [String] {
    try required(call(collection, Interface.collection, "SearchItems", [.dictionary(attributes)])[0])
      .strings
  }

  /// Creates an item, or overwrites one that has all of `attributes`.
  func createItem(
    in collection: String,
    label: String,
    attributes: [String: String],
    _ secret: borrowing SecretBytes
  ) throws(ServiceFailure) -> (item: String, prompt: String) {
    let properties = Variant.properties([
      ("\(Interface.item).Label", .string(label)),
      ("\(Interface.item).Attributes", .dictionary(attributes)),
    ])
    let answer = try call(
      collection,
      Interface.collection,
      "CreateItem",
      [properties, session.seal(secret), .boolean(true)]
    )
    return (try required(answer[0]?.string), try required(answer[1]?.string))
  }

  // MARK: Item

  func secret(_ item: String) throws(ServiceFailure) -> SecretBytes {
    let answer = try call(item, Interface.item, "GetSecret", [.path(session.path)])
    guard let sealed = answer[0], let secret = session.open(sealed) else { throw .malformed }
    return secret
  }

  func setSecret(_ item: String, _ secret: borrowing SecretBytes) throws(ServiceFailure) {
    _ = try call(item, Interface.item, "SetSecret", [session.seal(secret)])
  }

  /// Gives the path of a prompt that must be answered first, or none.
  func delete(_ item: String) throws(ServiceFailure) -> String {
    try required(call(item, Interface.item, "Delete")[0]?.string)
  }

  private func required<Value>(_ value: Value?) throws(ServiceFailure) -> Value {
    guard let value else { throw .malformed }
    return value
  }
}
#endif
