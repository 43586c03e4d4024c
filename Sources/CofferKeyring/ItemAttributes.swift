#if Keyring
internal import CofferCore
internal import FoundationEssentials

/// How identity and metadata are put into a Secret Service item's attributes and label.
///
/// | Attribute | Holds |
/// |---|---|
/// | `service`, `username` | the identifier: what Python's keyring, go-keyring and keyring-rs use too |
/// | `xdg:schema` | `org.freedesktop.Secret.Generic`, as `secret-tool` has it |
/// | `coffer:expires` | the time of expiry, ISO 8601 in UTC with milliseconds |
/// | `coffer:created` | the time of creation, where one was given; the service sets its own otherwise |
/// | `coffer:label` | `given`, where the label was given and happens to be the default one |
/// | `coffer:attribute:NAME` | an attribute whose name is one of the above, or begins with `coffer:` |
///
/// Other attributes are stored under their own names. The service keeps attributes unencrypted.
enum ItemAttributes {
  static let service = "service"
  static let account = "username"
  static let schema = "xdg:schema"
  static let genericSchema = "org.freedesktop.Secret.Generic"
  private static let own = "coffer:"
  private static let expires = "coffer:expires"
  private static let created = "coffer:created"
  private static let givenLabel = "coffer:label"
  private static let escaped = "coffer:attribute:"

  /// What an item is found by: these two alone, whatever else it has.
  static func query(_ identifier: SecretIdentifier) -> [String: String] {
    [service: identifier.service, account: identifier.account]
  }

  /// The label of an item that was given none: a keyring's user sees a name for each. Python's keyring
  /// and go-keyring use the same.
  static func defaultLabel(_ identifier: SecretIdentifier) -> String {
    "Password for '\(identifier.account)' on '\(identifier.service)'"
  }

  /// Throws `.invalidMetadata` where a date cannot be written: before the year 1 or after 9999.
  static func validate(_ metadata: SecretMetadata?) throws(SecretError) {
    try metadata?.validate()
    for date in [metadata?.expires, metadata?.created] {
      guard let date else { continue }
      // The first and the last second of the years that ISO 8601 writes in four digits.
      if date.timeIntervalSince1970 < -62_135_596_800 || date.timeIntervalSince1970 >= 253_402_300_800 {
        throw SecretError(
          .invalidMetadata,
          "A date is before the year 1 or after the year 9999.",
          advice: "Correct it."
        )
      }
    }
  }

  /// The attributes of an item with `metadata`. Of `existing`, what is not the metadata's stays.
  static func attributes(
    _ identifier: SecretIdentifier,
    _ metadata: SecretMetadata?,
    over existing: [String: String]?
  ) -> [String: String] {
    var result = query(identifier)
    result[schema] = existing.map { $0[schema] } ?? genericSchema
    result[created] = existing.map { $0[created] } ?? metadata?.created.map(text)
    guard let metadata else { return result }
    result[expires] = metadata.expires.map(text)
    if let label = metadata.label, label.utf8.elementsEqual(defaultLabel(identifier).utf8) {
      result[givenLabel] = "given"
    }
    for (name, value) in metadata.attributes {
      result[isReserved(name) ? escaped + name : name] = value
    }
    return result
  }

  static func label(_ identifier: SecretIdentifier, _ metadata: SecretMetadata?) -> String {
    metadata?.label ?? defaultLabel(identifier)
  }

  /// The identifier in an item's attributes, or `nil` where it has none that could be ours.
  static func identifier(_ attributes: [String: String]) -> SecretIdentifier? {
    guard let service = attributes[service], let account = attributes[account] else { return nil }
    do {
      return try SecretIdentifier(service: service, account: account)
    } catch {
      return nil  // such as an empty name: another program's item, which cannot be named here
    }
  }

  /// The metadata in an item's properties. Times of the service are in whole seconds, and 0 is none.
  static func metadata(
    _ identifier: SecretIdentifier,
    _ attributes: [String: String],
    label: String?,
    created: UInt64?,
    modified: UInt64?
  ) -> SecretMetadata {
    var metadata = SecretMetadata()
    if let label, attributes[givenLabel] != nil || !label.utf8.elementsEqual(defaultLabel(identifier).utf8) {
      metadata.label = label
    }
    metadata.created = attributes[Self.created].flatMap(date) ?? created.flatMap(date)
    metadata.modified = modified.flatMap(date)
    metadata.expires = attributes[expires].flatMap(date)
    for (name, value) in attributes {
      if name.hasPrefix(escaped) {
        metadata.attributes[String(name.dropFirst(escaped.count))] = value
      } else if !isReserved(name) {
        metadata.attributes[name] = value
      }
    }
    return metadata
  }

  /// Whether an item with `attributes` is this secret and nothing more particular: another program's
  /// name for itself and a general schema do not make it another one, and any further attribute does.
  static func isOnly(_ identifier: SecretIdentifier, _ attributes: [String: String]) -> Bool {
    let rest = attributes.filter { $0.key != "application" && $0.key != schema && !$0.key.hasPrefix(own) }
    return rest == query(identifier) && [nil, "", genericSchema].contains(attributes[schema])
  }

  /// Whether an item that is locked may be a secret that can be named. gnome-keyring gives hashes then.
  static func mayBeNamed(_ attributes: [String: String]) -> Bool {
    attributes.isEmpty || attributes[service] != nil || attributes["gkr:compat:hashed:service"] != nil
  }

  private static func isReserved(_ name: String) -> Bool {
    name == service || name == account || name == schema || name.hasPrefix(own)
  }

  private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
  private static func text(_ date: Date) -> String { date.formatted(style) }

  private static func date(_ text: String) -> Date? {
    do {
      return try style.parse(text)
    } catch {
      return nil  // written by something else
    }
  }

  private static func date(_ seconds: UInt64) -> Date? {
    seconds == 0 ? nil : Date(timeIntervalSince1970: Double(seconds))
  }
}
#endif
