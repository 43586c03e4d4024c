public import FoundationEssentials

/// An error with a code for programs and a text for people.
///
/// The type is a struct with an extensible code, so that functions with typed throws stay source compatible when a code
/// is added. An error never contains a secret or anything derived from one.
public struct SecretError: Error, Hashable, Sendable {
  /// The kind of the error. Programs decide by the code, and not by the text.
  public let code: Code
  /// The secret that the call was about, or `nil` if it was not about one secret.
  public let identifier: SecretIdentifier?
  /// What happened, as a sentence.
  public let reason: String
  /// What to do about it, as one or more sentences, or `nil`.
  public let advice: String?
  /// What the call has changed.
  public let effect: Effect
  /// What a person can do with the tool. ``advice`` says it without the tool's commands.
  package let remedy: Remedy?

  package enum Remedy: Hashable, Sendable {
    /// To accept the vault at a path as it is, if a person knows that it is the right one.
    case trust(path: String)
    /// To run `doctor`, which says what must be set up.
    case diagnosis
  }

  /// What a call that failed has changed in the store.
  public enum Effect: Hashable, Sendable {
    /// Nothing was changed.
    case none
    /// The change stays in the store, or a part of it does.
    case changed
    /// The change may have been made or not. Read the secret before you repeat it.
    case unknown

    /// The effect in words.
    package var sentence: String {
      switch self {
      case .none: "Nothing was changed."
      case .changed: "The change stays."
      case .unknown: "It is not known whether the change was made."
      }
    }
  }

  /// Creates an error. The texts of keys and identities in `reason` and `advice`, such as a key that was given instead
  /// of a path, are cut off.
  public init(
    _ code: Code, _ reason: String, advice: String? = nil, effect: Effect = .none, identifier: SecretIdentifier? = nil
  ) {
    self.init(code, reason, advice: advice, effect: effect, identifier: identifier, remedy: nil)
  }

  package init(
    _ code: Code, _ reason: String, advice: String?, effect: Effect = .none, identifier: SecretIdentifier? = nil,
    remedy: Remedy?
  ) {
    (self.code, self.effect, self.identifier, self.remedy) = (code, effect, identifier, remedy)
    (self.reason, self.advice) = (reason.withoutKeys, advice?.withoutKeys)
  }

  /// Returns the error with `identifier`, unless it already has an identifier.
  package func about(_ identifier: SecretIdentifier) -> SecretError {
    SecretError(code, reason, advice: advice, effect: effect, identifier: self.identifier ?? identifier, remedy: remedy)
  }

  /// Returns the error with another effect.
  package func with(_ effect: Effect) -> SecretError {
    SecretError(code, reason, advice: advice, effect: effect, identifier: identifier, remedy: remedy)
  }
}

extension SecretError: CustomStringConvertible {
  /// The reason, the effect unless nothing was changed, and the advice.
  public var description: String {
    [reason, effect == .none ? nil : effect.sentence, advice].compactMap(\.self).joined(separator: " ")
  }
}

extension SecretError: LocalizedError {
  /// The description, which `localizedDescription` returns.
  public var errorDescription: String? { description }
  /// The reason.
  public var failureReason: String? { reason }
  /// The advice.
  public var recoverySuggestion: String? { advice }
}

extension SecretError {
  /// The kind of an error. Later versions may add codes. A missing secret is not an error, unless a program requires
  /// it.
  ///
  /// A code can be caught: `catch SecretError.Code.locked`.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The name of the code: that of its static property.
    public let description: String
    /// Creates the code of that name. For a backend with errors of its own.
    public init(_ name: String) { description = name }

    // The backend cannot be used now.

    /// The backend is locked: no source has a credential, or the keyring needs a password and prompts are not allowed.
    public static let locked = Code("locked")
    /// The credential does not open this vault.
    public static let wrongKey = Code("wrongKey")
    /// A person dismissed the prompt.
    public static let promptDismissed = Code("promptDismissed")
    /// The system or the service refused access: permissions, ownership, a read-only file.
    public static let denied = Code("denied")
    /// The backend cannot be reached: no bus, no service.
    public static let unavailable = Code("unavailable")
    /// A lock or a service was not available before the deadline.
    public static let timedOut = Code("timedOut")

    /// There is no value, and the program requires one.
    public static let missing = Code("missing")

    // The vault is missing, damaged or unusual.

    /// There is no vault at the path.
    public static let vaultNotFound = Code("vaultNotFound")
    /// The file at the path is not a vault.
    public static let notAVault = Code("notAVault")
    /// Authentication failed: the vault is damaged, or it was changed without its key.
    public static let tampered = Code("tampered")
    /// The vault is authentic, but older than a state that was seen before. A backup may have been restored.
    public static let rolledBack = Code("rolledBack")
    /// The vault at the path is not the one that was seen before.
    public static let unexpectedVault = Code("unexpectedVault")
    /// The vault's master key is not a successor of the one that was seen before: it is older, or foreign.
    public static let unexpectedKey = Code("unexpectedKey")
    /// The record of what was seen of the vault is damaged or cannot be read, so the vault cannot be checked against
    /// it.
    public static let unverifiable = Code("unverifiable")
    /// Nothing proves the origin of the vault yet: an identity opened it, but anyone can make a vault for a recipient.
    public static let untrusted = Code("untrusted")
    /// The vault has a later version of the format, or the stored value a version that the program does not read.
    public static let unsupportedVersion = Code("unsupportedVersion")
    /// The key derivation needs more memory or time than the limits allow.
    public static let costLimitExceeded = Code("costLimitExceeded")
    /// The vault, file or secret that the call would create already exists.
    public static let alreadyExists = Code("alreadyExists")

    // The call failed.

    /// Reading or writing failed.
    public static let io = Code("io")
    /// A value could not be encoded. Nothing was stored.
    public static let encodingFailed = Code("encodingFailed")
    /// The stored bytes do not decode as the requested type. They are unchanged.
    public static let decodingFailed = Code("decodingFailed")
    /// A step between two versions of a stored value failed. The stored value is unchanged.
    public static let migrationFailed = Code("migrationFailed")
    /// The steps between the versions of a stored value do not form one chain. The program is wrong.
    public static let invalidMigration = Code("invalidMigration")
    /// The service or the account is empty, too long, or contains a NUL.
    public static let invalidIdentifier = Code("invalidIdentifier")
    /// The label or an attribute exceeds the bounds.
    public static let invalidMetadata = Code("invalidMetadata")
    /// The text is not a key: mistyped, truncated, or something else.
    public static let invalidKey = Code("invalidKey")
    /// The secret or the number of key slots is above the maximum.
    public static let tooLarge = Code("tooLarge")
    /// A store on another machine did not say whether it made the change. Read the secret before you repeat the change.
    public static let outcomeUnknown = Code("outcomeUnknown")
    /// The call conflicts with another one, such as the use of a backend in its own transaction.
    public static let conflict = Code("conflict")
    /// Several different items have the identifier, but the call needs one.
    public static let ambiguous = Code("ambiguous")
    /// The URL of a vault is malformed, or has a part that it must not have.
    public static let invalidURL = Code("invalidURL")
    /// The backend does not support the call.
    public static let unsupported = Code("unsupported")
    /// The configuration or the environment is wrong.
    public static let configuration = Code("configuration")
    /// No backend was chosen, and none is available.
    public static let noBackend = Code("noBackend")
  }
}

/// Whether `error` is a ``SecretError`` of that kind, for `catch SecretError.Code.locked`.
public func ~= (code: SecretError.Code, error: any Error) -> Bool {
  (error as? SecretError)?.code == code
}
