public import CofferCore
package import CofferVaultFormat

/// A secret that opens a vault. Its secret is wiped when the last copy is released.
///
/// Make one with ``key(_:)``, ``passphrase(_:)``, ``identities(_:)`` or ``masterKey(_:)``.
public struct VaultCredential: Sendable {
  /// The kind of a credential and of the key slots that it opens. Later versions may add kinds.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The name of the kind, such as `passphrase`.
    public let description: String

    init(_ name: String) { description = name }
  }

  /// Decides which key slots the credential fits.
  public let kind: Kind
  /// The bytes of the key or of the passphrase. Empty for identities and a recipient.
  public let secret: SecretBytes
  var identities: [VaultIdentity] = []
  var recipient: VaultRecipient?

  init(_ kind: Kind, _ secret: SecretBytes) {
    self.kind = kind
    self.secret = secret
  }
}

extension VaultCredential.Kind {
  /// A 32-byte key.
  public static let key = VaultCredential.Kind("key")
  /// A passphrase.
  public static let passphrase = VaultCredential.Kind("passphrase")
  /// Identities, which open the slots of their recipients.
  public static let identity = VaultCredential.Kind("identity")
  /// A recipient. It makes a key slot and opens none.
  public static let recipient = VaultCredential.Kind("recipient")
  /// The vault's master key itself.
  public static let masterKey = VaultCredential.Kind("master key")
}

extension VaultCredential {
  /// A 32-byte key, such as ``VaultKey/generate()`` makes. For the text of a key, use ``VaultKey/parse(_:)`` first.
  public static func key(_ key: SecretBytes) -> VaultCredential { VaultCredential(.key, key) }

  /// A passphrase of 1 byte to 1 MiB, which Argon2id stretches. It may contain any bytes.
  public static func passphrase(_ passphrase: SecretBytes) -> VaultCredential {
    VaultCredential(.passphrase, passphrase)
  }

  /// One or more identities. The first slot of one of their recipients opens the vault.
  ///
  /// Anyone can make a vault for a recipient. A vault that an identity alone opened is therefore refused with `.untrusted`,
  /// until ``VaultOptions/pins`` name it, a record says that it was used at its path, or ``VaultBackend/trust(_:pin:onlyHere:)`` accepts
  /// it.
  public static func identities(_ identities: [VaultIdentity]) -> VaultCredential {
    var credential = VaultCredential(.identity, SecretBytes(""))
    credential.identities = identities
    return credential
  }

  /// A recipient, for which a key slot is to be made.
  public static func recipient(_ recipient: VaultRecipient) -> VaultCredential {
    var credential = VaultCredential(.recipient, SecretBytes(""))
    credential.recipient = recipient
    return credential
  }

  /// A master key that ``VaultBackend/withMasterKey(_:)`` returned earlier. It opens the vault without a
  /// derivation until the master key is changed.
  ///
  /// A master key fits no key slot: it cannot be added to a vault, nor removed without a change of the master key.
  /// Prefer a key for anything that is kept longer than a session.
  public static func masterKey(_ master: SecretBytes) -> VaultCredential {
    VaultCredential(.masterKey, master)
  }

  /// Returns the credential whose text is all of `text`: that of a key, or of identities, which begins with `#` or
  /// `AGE-SECRET-KEY-`. Throws `.invalidKey` for any other text.
  public static func parse(_ text: SecretBytes) throws(SecretError) -> VaultCredential {
    if VaultIdentity.isText(text) { return .identities(try VaultIdentity.parse(text)) }
    return .key(try VaultKey.parse(text))
  }

  /// Whether `text` contains the beginning of a key or of an identity, in letters of either case.
  static func isSecret(_ text: String) -> Bool {
    let text = text.lowercased()
    return text.contains("coffer-key-v1:") || text.contains("age-secret-key-")
  }

  /// Throws `.configuration` if `path`, which `name` gives, is a key: it must not stand in a message as a path does.
  package static func requirePath(_ path: String, from name: String) throws(SecretError) {
    guard isSecret(path) else { return }
    throw SecretError(
      .configuration, "\(name) has a key or an identity itself, and not what leads to it.",
      advice:
        "Give the path of its file, or put a key into COFFER_KEY. Replace the key if others may have seen it."
    )
  }

  /// The recipient, or those of the identities. Throws `.unsupported` for a post-quantum identity if libsodium is too old.
  package func recipients() throws(SecretError) -> [VaultRecipient] {
    if let recipient { return [recipient] }
    var recipients: [VaultRecipient] = []
    for identity in identities {
      guard let recipient = identity.recipient else { throw .noXWing }
      recipients.append(recipient)
    }
    return recipients
  }

  /// The identity of the recipient with the public key `recipient`, or `nil`.
  func identity(of recipient: ArraySlice<UInt8>) -> VaultIdentity? {
    identities.first { $0.recipient?.key[...] == recipient }
  }
}

/// A source of credentials for a vault: a file, an environment variable, a prompt.
///
/// A vault asks its sources in order when it is first used, and again when another process has changed its
/// master key. Methods are called from any thread.
public protocol VaultCredentialSource: Sendable {
  /// The name of the source in messages, such as `COFFER_KEY_FILE`. Never a secret.
  var name: String { get }

  /// Whether the source may show a prompt. Such a source is not used for a read that no person asked for, such as one that
  /// follows a change by another process. The default is `false`.
  var mayPrompt: Bool { get }

  /// Returns the credential, or `nil` if this source has none for `vault`; then the next source is asked.
  /// Throws if the source should have a credential and cannot return it; then no other source is asked.
  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential?

  /// Returns another credential after `failures` ones of this source did not open the vault, or `nil` to give up: a prompt
  /// can ask again. `failures` is 0 at the first call. The default calls ``credential(for:)`` once. Throws as that does.
  func credential(for vault: VaultDescription, after failures: Int) throws(SecretError) -> VaultCredential?
}

extension VaultCredentialSource {
  /// `false`
  public var mayPrompt: Bool { false }

  /// Calls ``credential(for:)`` if `failures` is 0, and otherwise returns `nil`.
  public func credential(
    for vault: VaultDescription, after failures: Int
  ) throws(SecretError) -> VaultCredential? {
    failures == 0 ? try credential(for: vault) : nil
  }
}

/// What can be read of a vault without opening it.
public struct VaultDescription: Sendable {
  /// The path that the vault is opened by.
  public let path: String
  /// The vault's id, which never changes: 32 lower-case hexadecimal digits.
  public let id: String
  private let slots: [KeySlot]

  /// The key slots in their order. They are not authenticated.
  public var keySlots: [VaultKeySlot] { slots.enumerated().map { VaultKeySlot($1, at: $0) } }

  package init(path: String, id: String, slots: [KeySlot] = []) {
    (self.path, self.id, self.slots) = (path, id, slots)
  }
}
