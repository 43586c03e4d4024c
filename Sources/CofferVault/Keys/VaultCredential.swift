public import CofferCore

/// A secret that opens a vault. Its secret is wiped when the last copy is released.
///
/// Make one with ``key(_:)``, ``passphrase(_:)`` or ``identities(_:)``.
public struct VaultCredential: Sendable {
  /// The kind of a credential and of the key slots that it opens. Later versions may add kinds.
  package struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The name of the kind, such as `passphrase`.
    package let description: String

    init(_ name: String) { description = name }
  }

  /// Decides which key slots the credential fits.
  package let kind: Kind
  /// The bytes of the key or of the passphrase. Empty for identities and a recipient.
  package let secret: SecretBytes
  var identities: [VaultIdentity] = []
  var recipient: VaultRecipient?
}

extension VaultCredential.Kind {
  /// A 32-byte key.
  package static let key = VaultCredential.Kind("key")
  /// A passphrase.
  package static let passphrase = VaultCredential.Kind("passphrase")
  /// Identities, which open the slots of their recipients.
  package static let identity = VaultCredential.Kind("identity")
  /// A recipient. It makes a key slot and opens none.
  package static let recipient = VaultCredential.Kind("recipient")
  /// The vault's master key itself.
  package static let masterKey = VaultCredential.Kind("master key")
}

extension VaultCredential {
  /// A 32-byte key, such as ``VaultKey/generate()`` makes. For the text of a key, use ``VaultKey/parse(_:)`` first.
  public static func key(_ key: SecretBytes) -> VaultCredential { VaultCredential(kind: .key, secret: key) }

  /// A passphrase of 1 byte to 1 MiB, which Argon2id stretches. It may contain any bytes.
  public static func passphrase(_ passphrase: SecretBytes) -> VaultCredential {
    VaultCredential(kind: .passphrase, secret: passphrase)
  }

  /// One or more identities. The first slot of one of their recipients opens the vault.
  ///
  /// Anyone can make a vault for a recipient. A vault that an identity alone opened is therefore refused with
  /// `.untrusted`, until ``VaultOptions/pins`` name it, a record says that it was used at its path, or a person accepts
  /// it.
  public static func identities(_ identities: [VaultIdentity]) -> VaultCredential {
    VaultCredential(kind: .identity, secret: SecretBytes(""), identities: identities)
  }

  /// A recipient, for which a key slot is to be made.
  public static func recipient(_ recipient: VaultRecipient) -> VaultCredential {
    VaultCredential(kind: .recipient, secret: SecretBytes(""), recipient: recipient)
  }

  /// A master key that ``VaultBackend/withMasterKey(_:)`` returned earlier. It opens the vault without a derivation
  /// until the master key is changed.
  ///
  /// A master key fits no key slot: it cannot be added to a vault, nor removed without a change of the master key.
  /// Prefer a key for anything that is kept longer than a session.
  package static func masterKey(_ master: SecretBytes) -> VaultCredential {
    VaultCredential(kind: .masterKey, secret: master)
  }

  /// Returns the credential that `text` contains: a key, or identities if it begins with `#` or `AGE-SECRET-KEY-`.
  /// Throws `.invalidKey` for any other text.
  public static func parse(_ text: SecretBytes) throws(SecretError) -> VaultCredential {
    if VaultIdentity.isText(text) { return .identities(try VaultIdentity.parse(text)) }
    return .key(try VaultKey.parse(text))
  }

  /// Whether `text` contains the beginning of a key or of an identity, in letters of either case.
  static func isSecret(_ text: String) -> Bool {
    // Does not search the text with `contains`: its first use costs more than reading a vault.
    let bytes = Array(text.lowercased().utf8)
    return ["coffer-key-v1:", "age-secret-key-"].contains { beginning in
      bytes.indices.contains { bytes[$0...].starts(with: beginning.utf8) }
    }
  }

  /// Throws `.configuration` if `path`, given by `name`, contains a key, which must not appear in messages as paths do.
  package static func requirePath(_ path: String, from name: String) throws(SecretError) {
    guard isSecret(path) else { return }
    throw SecretError(
      .configuration, "\(name) has a key or an identity itself, and not what leads to it.",
      advice:
        "Give the path of its file, or put a key into COFFER_KEY. Replace the key if others may have seen it."
    )
  }

  /// The recipient, or those of the identities. Throws `.unsupported` for a post-quantum identity if libsodium is too
  /// old.
  package func recipients() throws(SecretError) -> [VaultRecipient] {
    if let recipient { return [recipient] }
    return try identities.map { identity throws(SecretError) in
      guard let recipient = identity.recipient else { throw .noXWing }
      return recipient
    }
  }
}
