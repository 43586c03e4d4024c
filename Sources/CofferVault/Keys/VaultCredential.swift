public import CofferCore

/// What opens a vault. It is wiped when it is let go.
public enum VaultCredential: ~Copyable, Sendable {
  /// A 32-byte key, as made by ``VaultKey/generate()``.
  case key(SecretBytes)
  /// A passphrase, stretched with Argon2id. Any bytes, at least one.
  case passphrase(SecretBytes)

  var isPassphrase: Bool {
    switch self {
    case .key: false
    case .passphrase: true
    }
  }
}

/// A place that a vault's key may come from: the environment, a file, a person.
///
/// A vault asks its sources in order, and tries what each gives, when it is first used and when its master
/// key has been changed by someone else. Called from any thread.
public protocol VaultCredentialSource: Sendable {
  /// What to call the source in messages, such as `COFFER_KEY_FILE`. Never a secret.
  var name: String { get }

  /// The credential, or `nil` where this source has none for this vault. Throws where there should be one
  /// and it cannot be had: then no further source is asked.
  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential?
}

/// What can be known of a vault without opening it.
public struct VaultDescription: Sendable {
  /// The path it was opened by.
  public let path: String
  /// The vault's id, for its life: 32 lower-case hexadecimal digits.
  public let id: String
  /// Its key slots, in order. Not yet authenticated.
  public let keySlots: [VaultKeySlot]

  package init(path: String, id: String, keySlots: [VaultKeySlot]) {
    self.path = path
    self.id = id
    self.keySlots = keySlots
  }
}
