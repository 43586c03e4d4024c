#if Keyring
internal import CofferCore
internal import FoundationEssentials

/// Maps identifiers and metadata to the attributes and the label of a Secret Service item.
///
/// | Attribute | Content |
/// |---|---|
/// | `service`, `username` | the identifier, as in Python's keyring, go-keyring and keyring-rs |
/// | `account` | the account if there is no `username`, as in keytar, Visual Studio Code and JetBrains' programs |
/// | `xdg:schema` | `org.freedesktop.Secret.Generic`, as in `secret-tool` |
/// | `coffer:expires` | the expiry, as ISO 8601 in UTC with milliseconds |
/// | `coffer:created` | the creation time, if the first store has one; otherwise the service's own time counts |
/// | `coffer:label` | `given`, if the metadata has a label that equals the default label |
/// | `coffer:attributes` | the names of the attributes that this module gave the item, see ``OwnNames`` |
/// | `coffer:attribute:NAME` | the attribute NAME, if NAME is in this table or begins with `coffer:` or `xdg:` |
///
/// Other attributes keep their names. The service stores attributes unencrypted.
///
/// Several items may have the same identifier. They are the same secret only if their ``distinction(_:)`` is the same.
enum ItemAttributes {
  static let service = "service"
  static let account = "username"
  /// The attribute that other programs use for the account. It counts only in items without ``account``.
  private static let otherAccount = "account"
  private static let schema = "xdg:schema"
  private static let program = "application"
  private static let genericSchema = "org.freedesktop.Secret.Generic"
  private static let reservedPrefixes = ["coffer:", "xdg:"]
  private static let expires = "coffer:expires"
  private static let created = "coffer:created"
  private static let givenLabel = "coffer:label"
  private static let ownNames = "coffer:attributes"
  private static let escapePrefix = "coffer:attribute:"

  /// The attributes of a new item that contain its identifier.
  static func identity(_ identifier: SecretIdentifier) -> [String: String] {
    [service: identifier.service, account: identifier.account]
  }

  /// The attributes of the two searches for an identifier. An item matches if it has both attributes, whatever others
  /// it has. In the second search, an item counts only if it ``isWithoutUserName(_:)``.
  static func queries(_ identifier: SecretIdentifier) -> [[String: String]] {
    [identity(identifier), [service: identifier.service, otherAccount: identifier.account]]
  }

  /// Whether there is no attribute `username`. gnome-keyring returns the attributes of locked items as hashes.
  static func isWithoutUserName(_ attributes: [String: String]) -> Bool {
    attributes[account] == nil && attributes["gkr:compat:hashed:\(account)"] == nil
  }

  private static func accountName(_ attributes: [String: String]) -> String {
    isWithoutUserName(attributes) && attributes[otherAccount] != nil ? otherAccount : account
  }

  static func label(_ identifier: SecretIdentifier, _ metadata: SecretMetadata?) -> String {
    metadata?.label ?? defaultLabel(identifier)
  }

  /// The label that keyring programs show for an item without a given label. Python's keyring and go-keyring use it
  /// too.
  private static func defaultLabel(_ identifier: SecretIdentifier) -> String {
    "Password for '\(identifier.account)' on '\(identifier.service)'"
  }

  private static func isDefault(_ label: String, _ identifier: SecretIdentifier) -> Bool {
    label.utf8.elementsEqual(defaultLabel(identifier).utf8)
  }

  /// Throws `.invalidMetadata` if a date is outside the years 1 to 9999, which ISO 8601 writes with four digits.
  static func validate(_ metadata: SecretMetadata?) throws(SecretError) {
    try metadata?.validate()
    for case let date? in [metadata?.expires, metadata?.created] {
      if date.timeIntervalSince1970 < -62_135_596_800 || date.timeIntervalSince1970 >= 253_402_300_800 {
        throw SecretError(
          .invalidMetadata, "A date in the metadata is before the year 1 or after the year 9999.",
          advice: "Correct the date.")
      }
    }
  }

  /// Returns the attributes of an item with `metadata`. Of `existing`, the creation time and all attributes of other
  /// programs are kept: those programs may search for them.
  static func attributes(
    _ identifier: SecretIdentifier, _ metadata: SecretMetadata?, over existing: [String: String]?
  ) -> [String: String] {
    var result = identity(identifier)
    if let existing {
      let own = OwnNames(existing[ownNames])
      result = existing.filter {
        !$0.key.hasPrefix("coffer:") && !own.contains($0.key) && !isProvidersOwn($0.key, existing)
      }
    } else {
      result[schema] = genericSchema
    }
    result[created] = existing.map { $0[created] } ?? metadata?.created.map(text)
    guard let metadata else { return result }
    result[expires] = metadata.expires.map(text)
    if let label = metadata.label, isDefault(label, identifier) { result[givenLabel] = "given" }
    var own = OwnNames()
    for (name, value) in metadata.attributes {
      if isReserved(name, in: result) {
        result[escapePrefix + name] = value
      } else if result[name].map({ !$0.utf8.elementsEqual(value.utf8) }) ?? true {
        result[name] = value
        own.insert(name)
      }
    }
    result[ownNames] = own.text
    return result
  }

  /// Returns `attributes` without those that the service adds by itself.
  static func withoutProviders(_ attributes: [String: String]) -> [String: String] {
    attributes.filter { !isProvidersOwn($0.key, attributes) }
  }

  /// Returns the attributes of `item` for a copy with the identifier `new`. The copy has the time of creation of the
  /// original, in seconds since 1970.
  static func attributes(
    _ item: [String: String], renamedTo new: SecretIdentifier, created seconds: UInt64?
  ) -> [String: String] {
    var result = withoutProviders(item)
    result[service] = new.service
    result[accountName(item)] = new.account
    if result[created] == nil { result[created] = seconds.flatMap(date).map(text) }
    return result
  }

  /// Compares attributes by bytes. `==` on strings ignores differences of Unicode normalization.
  static func areEqual(_ left: [String: String], _ right: [String: String]) -> Bool {
    left.count == right.count
      && left.allSatisfy { name, value in right[name].map { $0.utf8.elementsEqual(value.utf8) } ?? false }
  }

  /// Returns the identifier in an item's attributes, or `nil` if they do not contain a valid one.
  static func identifier(_ attributes: [String: String]) -> SecretIdentifier? {
    guard let service = attributes[service], let account = attributes[accountName(attributes)] else { return nil }
    // Another program's item may have an empty name, for example.
    do { return try SecretIdentifier(service: service, account: account) } catch { return nil }
  }

  /// Returns the metadata in an item's attributes and properties.
  static func metadata(of item: FoundItem, _ identifier: SecretIdentifier) -> SecretMetadata {
    let attributes = item.attributes
    var metadata = SecretMetadata()
    if let label = item.label, attributes[givenLabel] != nil || !isDefault(label, identifier) {
      metadata.label = label
    }
    metadata.created = attributes[created].flatMap(date) ?? date(item.created)
    metadata.modified = date(item.modified)
    metadata.expires = attributes[expires].flatMap(date)
    for (name, value) in attributes where !isProvidersOwn(name, attributes) {
      if name.hasPrefix(escapePrefix) {
        metadata.attributes[String(name.dropFirst(escapePrefix.count))] = value
      } else if !isReserved(name, in: attributes) {
        metadata.attributes[name] = value
      }
    }
    return metadata
  }

  /// Returns the attributes by which another program distinguishes the item from others with the same identifier.
  ///
  /// These do not count: attributes that begin with `xdg:` or `coffer:`, those that this module wrote as metadata,
  /// those that the service adds by itself, and `target=default`, which keyring-rs gives every item. An item with
  /// `account` instead of `username` differs by that from one with `username`.
  static func distinction(_ attributes: [String: String]) -> [String: String] {
    let own = OwnNames(attributes[ownNames])
    return attributes.filter { name, value in
      (name == otherAccount || !isReserved(name, in: attributes)) && !own.contains(name)
        && !isProvidersOwn(name, attributes) && !(name == "target" && value == "default")
    }
  }

  /// Returns `distinction` without the name of the program that wrote the item.
  static func withoutProgram(_ distinction: [String: String]) -> [String: String] {
    distinction.filter { $0.key != program }
  }

  /// Whether the service added the attribute by itself. KeePassXC adds these to each item.
  private static func isProvidersOwn(_ name: String, _ attributes: [String: String]) -> Bool {
    let names = ["Title", "UserName", "URL", "Notes", "Uuid", "Path", "TOTP"]
    return names.contains(name) && attributes["Uuid"] != nil && attributes["Path"] != nil
  }

  /// Whether a locked item may have an identifier. gnome-keyring returns the attributes of locked items as hashes.
  static func mayBeNamed(_ attributes: [String: String]) -> Bool {
    attributes.isEmpty || attributes[service] != nil || attributes["gkr:compat:hashed:service"] != nil
  }

  private static func isReserved(_ name: String, in attributes: [String: String]) -> Bool {
    name == service || name == account || name == accountName(attributes)
      || reservedPrefixes.contains { name.hasPrefix($0) }
  }

  private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
  private static func text(_ date: Date) -> String { date.formatted(style) }

  private static func date(_ text: String) -> Date? {
    do { return try style.parse(text) } catch { return nil }  // not written by this module
  }

  private static func date(_ seconds: UInt64) -> Date? {
    seconds == 0 ? nil : Date(timeIntervalSince1970: Double(seconds))
  }
}
#endif
