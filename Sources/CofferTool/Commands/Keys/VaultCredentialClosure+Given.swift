internal import Coffer

extension VaultCredentialClosure {
  /// A source with a key that is already known.
  init(key: consuming SecretBytes, named name: String) {
    let key = SharedSecret(key)
    self.init(name: name) { _ throws(SecretError) in .key(key.bytes.copy()) }
  }

  /// A source with a passphrase that was entered.
  init(passphrase: consuming SecretBytes) {
    let passphrase = SharedSecret(passphrase)
    self.init(name: "the terminal") { _ throws(SecretError) in .passphrase(passphrase.bytes.copy()) }
  }
}
