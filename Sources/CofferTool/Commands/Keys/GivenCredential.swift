internal import Coffer

/// A credential source with a credential that is already known.
struct GivenCredential: VaultCredentialSource {
  let name: String
  private let secret: SharedSecret
  private let isPassphrase: Bool

  init(passphrase: consuming SecretBytes) {
    name = "the terminal"
    secret = SharedSecret(passphrase)
    isPassphrase = true
  }

  init(key: consuming SecretBytes, named name: String) {
    self.name = name
    secret = SharedSecret(key)
    isPassphrase = false
  }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    isPassphrase ? .passphrase(secret.bytes.copy()) : .key(secret.bytes.copy())
  }
}
