public import FoundationEssentials

/// What is known of a secret beside its value. It is encrypted in a vault; in a keyring the attributes
/// and the label are not.
public struct SecretMetadata: Hashable, Sendable {
  /// A human-readable name: at most 1024 UTF-8 bytes.
  public var label: String?
  /// When the secret was first stored. `nil` when storing: now, or what it was.
  public var created: Date?
  /// When it was last stored. Backends set it; what is given here is ignored.
  public var modified: Date?
  /// When it stops being of use. Nothing is removed by itself.
  public var expires: Date?
  /// Further names and values: at most 32, names of 1…128 and values of at most 1024 UTF-8 bytes, no NUL.
  /// Unlike identifiers, two spellings of a name that are canonically equivalent are one name.
  public var attributes: [String: String]

  public static let maximumLabelLength = 1024
  public static let maximumAttributeCount = 32
  public static let maximumAttributeNameLength = 128
  public static let maximumAttributeValueLength = 1024

  public init(
    label: String? = nil,
    created: Date? = nil,
    modified: Date? = nil,
    expires: Date? = nil,
    attributes: [String: String] = [:]
  ) {
    self.label = label
    self.created = created
    self.modified = modified
    self.expires = expires
    self.attributes = attributes
  }

  /// Throws `.invalidMetadata` where a bound is exceeded. Every backend calls it before it stores.
  public func validate() throws(SecretError) {
    if let label, label.utf8.count > Self.maximumLabelLength || label.utf8.contains(0) {
      throw SecretError(
        .invalidMetadata,
        "The label is longer than \(Self.maximumLabelLength) bytes or has a NUL in it.",
        advice: "Shorten it."
      )
    }
    if attributes.count > Self.maximumAttributeCount {
      throw SecretError(
        .invalidMetadata,
        "There are \(attributes.count) attributes.",
        advice: "Use at most \(Self.maximumAttributeCount)."
      )
    }
    for (name, value) in attributes {
      if name.isEmpty || name.utf8.count > Self.maximumAttributeNameLength || name.utf8.contains(0) {
        throw SecretError(
          .invalidMetadata,
          "An attribute's name is empty, too long, or has a NUL in it.",
          advice: "Use 1 to \(Self.maximumAttributeNameLength) bytes."
        )
      }
      if value.utf8.count > Self.maximumAttributeValueLength || value.utf8.contains(0) {
        throw SecretError(
          .invalidMetadata,
          "The value of the attribute \(name) is too long or has a NUL in it.",
          advice: "Use at most \(Self.maximumAttributeValueLength) bytes."
        )
      }
    }
  }

  /// What a store over an existing secret leaves: the one rule for every backend.
  ///
  /// Given metadata replaces label, expiry and attributes as a whole; `nil` keeps what was there. The time
  /// of creation is the existing secret's, then the one given, then `now`.
  public static func merged(
    _ given: SecretMetadata?,
    over existing: SecretMetadata?,
    now: Date
  ) -> SecretMetadata {
    var result = given ?? existing ?? SecretMetadata()
    result.created = existing?.created ?? given?.created ?? now
    result.modified = now
    return result
  }
}

/// A secret's name and metadata, without its value.
public struct SecretItem: Hashable, Sendable {
  public let identifier: SecretIdentifier
  public let metadata: SecretMetadata

  public init(identifier: SecretIdentifier, metadata: SecretMetadata) {
    self.identifier = identifier
    self.metadata = metadata
  }
}
