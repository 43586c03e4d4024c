public import FoundationEssentials

/// The metadata of a secret. A vault encrypts all of it. A keyring does not encrypt the label and the attributes.
public struct SecretMetadata: Hashable, Sendable {
  /// A human-readable name: at most 1024 UTF-8 bytes without NUL.
  public var label: String?
  /// The time at which the secret was first stored. A store keeps the existing time. If there is none, it uses this
  /// one, or the current time if this is `nil`.
  public var created: Date?
  /// The time at which the secret was last stored. Backends set it and ignore the value in a call of `store`.
  public var modified: Date?
  /// The time at which the secret expires. Backends do not remove expired secrets.
  public var expires: Date?
  /// Names and values: at most 32, with names of 1…128 and values of at most 1024 UTF-8 bytes without NUL. Two
  /// canonically equivalent spellings of a name are one name, unlike in ``SecretIdentifier``.
  public var attributes: [String: String]

  // Lengths in UTF-8 bytes.
  package static let maximumLabelLength = 1024
  package static let maximumAttributeCount = 32
  package static let maximumAttributeNameLength = 128
  package static let maximumAttributeValueLength = 1024

  /// Creates metadata. A store throws `.invalidMetadata` if a bound is exceeded.
  public init(label: String? = nil, expires: Date? = nil, attributes: [String: String] = [:]) {
    (self.label, self.expires, self.attributes) = (label, expires, attributes)
  }

  /// Throws `.invalidMetadata` if a bound is exceeded. Every backend calls it before it stores a secret.
  package func validate() throws(SecretError) {
    func require(_ condition: Bool, else reason: String, advice: String) throws(SecretError) {
      if !condition { throw SecretError(.invalidMetadata, reason, advice: advice) }
    }
    func isText(_ text: String, atMost limit: Int) -> Bool {
      text.utf8.count <= limit && !text.utf8.contains(0)
    }
    try require(
      isText(label ?? "", atMost: Self.maximumLabelLength),
      else: "The label is longer than \(Self.maximumLabelLength) bytes or contains a NUL.",
      advice: "Shorten it.")
    try require(
      attributes.count <= Self.maximumAttributeCount, else: "There are \(attributes.count) attributes.",
      advice: "Use at most \(Self.maximumAttributeCount).")
    for (name, value) in attributes {
      try require(
        !name.isEmpty && isText(name, atMost: Self.maximumAttributeNameLength),
        else: "An attribute's name is empty, too long, or contains a NUL.",
        advice: "Use 1 to \(Self.maximumAttributeNameLength) bytes.")
      try require(
        isText(value, atMost: Self.maximumAttributeValueLength),
        else: "The value of the attribute \(name) is too long or contains a NUL.",
        advice: "Use at most \(Self.maximumAttributeValueLength) bytes.")
    }
  }
}

/// A secret with its value.
public struct Secret: Sendable {
  /// The identifier.
  public let identifier: SecretIdentifier
  /// The value, exactly as stored.
  public let value: SecretBytes
  /// The metadata.
  public let metadata: SecretMetadata
  /// Whether two copies of a vault were merged which both had changed the secret, and this is one of the values.
  public let isInConflict: Bool

  /// Creates a secret. Stores nothing.
  public init(
    _ identifier: SecretIdentifier, value: SecretBytes, metadata: SecretMetadata, isInConflict: Bool = false
  ) {
    (self.identifier, self.value, self.metadata) = (identifier, value, metadata)
    self.isInConflict = isInConflict
  }

  package var item: SecretItem {
    SecretItem(identifier: identifier, metadata: metadata, isInConflict: isInConflict)
  }
}

/// A secret's identifier and metadata, without its value.
public struct SecretItem: Hashable, Sendable {
  /// The identifier.
  public let identifier: SecretIdentifier
  /// The metadata.
  public let metadata: SecretMetadata
  /// The same as ``Secret/isInConflict``.
  public let isInConflict: Bool

  /// Creates an item.
  public init(identifier: SecretIdentifier, metadata: SecretMetadata, isInConflict: Bool = false) {
    (self.identifier, self.metadata, self.isInConflict) = (identifier, metadata, isInConflict)
  }
}
