/// What went wrong, as a code to decide by and a sentence to show.
///
/// A struct with an extensible code, and not an enum, so that functions that throw it by type stay source
/// compatible when a code is added. It never holds a secret, nor anything derived from one.
public struct SecretError: Error, Hashable, Sendable {
  /// What kind of failure it is. Decide by this.
  public let code: Code
  /// The secret that the call was about, where it was about one.
  public let identifier: SecretIdentifier?
  /// One sentence: what happened.
  public let reason: String
  /// One sentence: what to do about it.
  public let advice: String?

  public init(
    _ code: Code,
    _ reason: String,
    advice: String? = nil,
    identifier: SecretIdentifier? = nil
  ) {
    self.code = code
    self.reason = reason
    self.advice = advice
    self.identifier = identifier
  }

  /// The same error, about `identifier`.
  public func about(_ identifier: SecretIdentifier) -> SecretError {
    SecretError(code, reason, advice: advice, identifier: self.identifier ?? identifier)
  }
}

extension SecretError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    guard let advice else { return reason }
    return "\(reason) \(advice)"
  }
}

extension SecretError {
  /// The kinds of failure. A missing secret is none of them: it is `nil`, or `false` from `remove`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name, the same as its static property's.
    public let description: String
    public init(_ name: String) { description = name }

    // The secret is there, and cannot be had now.

    /// The store is locked: no key was given, or the keyring needs a password and nobody may be asked.
    public static let locked = Code("locked")
    /// A key or passphrase was given, and it does not open this vault.
    public static let wrongKey = Code("wrongKey")
    /// A person was asked, and declined.
    public static let promptDismissed = Code("promptDismissed")
    /// The system or the service refused: permissions, ownership, a read-only file.
    public static let denied = Code("denied")
    /// The backend cannot be reached: no bus, no service.
    public static let unavailable = Code("unavailable")
    /// The deadline passed while waiting for a lock or for a service.
    public static let timedOut = Code("timedOut")

    // The store is not what it should be.

    /// There is no vault at the path.
    public static let vaultNotFound = Code("vaultNotFound")
    /// There is something at the path, and it is not a vault.
    public static let notAVault = Code("notAVault")
    /// Authentication or a strict parse failed: the store is damaged, or someone changed it.
    public static let tampered = Code("tampered")
    /// The store is authentic and older than one already seen: a copy from the past was put back.
    public static let rolledBack = Code("rolledBack")
    /// Another vault is in the place of the one that was seen there.
    public static let unexpectedVault = Code("unexpectedVault")
    /// The vault has a master key that does not follow from the one that was seen: an older or a foreign one.
    public static let unexpectedKey = Code("unexpectedKey")
    /// The record of what was seen of the vault is damaged or cannot be read, so the vault cannot be checked against it.
    public static let unverifiable = Code("unverifiable")
    /// Written by a later version of the format.
    public static let unsupportedVersion = Code("unsupportedVersion")
    /// Opening it would cost more memory or time than the limits allow.
    public static let costLimitExceeded = Code("costLimitExceeded")
    /// The vault, or a file that the call was to make, is already there.
    public static let alreadyExists = Code("alreadyExists")

    // The call could not be carried out.

    /// The system failed to read or write.
    public static let io = Code("io")
    /// A value could not be encoded; nothing was stored.
    public static let encodingFailed = Code("encodingFailed")
    /// What is stored does not decode as the type asked for; it is still there.
    public static let decodingFailed = Code("decodingFailed")
    /// A service or account that cannot name a secret.
    public static let invalidIdentifier = Code("invalidIdentifier")
    /// A label or attributes out of bounds.
    public static let invalidMetadata = Code("invalidMetadata")
    /// Text that should be a key and is not: mistyped, cut off, or something else.
    public static let invalidKey = Code("invalidKey")
    /// A value, or a number of key slots, above the cap.
    public static let tooLarge = Code("tooLarge")
    /// The call contradicts one under way, such as using a backend inside its own transaction.
    public static let conflict = Code("conflict")
    /// The backend cannot do this at all.
    public static let unsupported = Code("unsupported")
    /// The configuration or the environment is wrong, or none was made yet.
    public static let configuration = Code("configuration")
  }
}
