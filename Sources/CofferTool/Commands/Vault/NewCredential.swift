internal import Coffer
internal import CofferSystem

/// The credential of a new vault. It comes from the same sources that will open the vault.
struct NewCredential: ~Copyable {
  enum Kind {
    case file(KeyFile)
    case environment
    case passphrase
  }
  let kind: Kind
  private let secret: SecretBytes
  private let isNewFile: Bool

  /// Reads, prompts for or generates a passphrase or key, as the options of `init` request.
  static func chosen(
    by options: InitCommand, _ configuration: CofferConfiguration, vault path: String
  ) throws -> NewCredential {
    if options.passphrase {
      let given = try given(by: { $0.hasPrefix("COFFER_PASSPHRASE") }, configuration, path)
      if let given { return NewCredential(kind: .passphrase, secret: given, isNewFile: false) }
      guard configuration.canPrompt else {
        throw SecretError(
          .locked, "There is no passphrase, and a prompt is not possible.",
          advice: "Set COFFER_PASSPHRASE_FILE, COFFER_PASSPHRASE_FD or COFFER_PASSPHRASE_COMMAND.")
      }
      return NewCredential(kind: .passphrase, secret: try PassphrasePrompt.new(for: path), isNewFile: false)
    }
    if options.keyFile == nil, configuration.keyFile == nil,
      let key = try given(by: { $0.hasPrefix("COFFER_KEY") }, configuration, path)
    {
      return NewCredential(kind: .environment, secret: key, isNewFile: false)
    }
    let file = KeyFile(
      path: try Path.absolute(
        options.keyFile ?? configuration.keyFile ?? configuration.defaultKeyFile))
    if let key = try file.key() { return NewCredential(kind: .file(file), secret: key, isNewFile: false) }
    return NewCredential(kind: .file(file), secret: VaultKey.generate(), isNewFile: true)
  }

  var keyFile: KeyFile? {
    if case .file(let file) = kind { file } else { nil }
  }

  /// Creates the key file and returns it, or returns `nil` if the key has another source.
  borrowing func createKeyFile() throws(SecretError) -> KeyFile? {
    guard isNewFile, let keyFile else { return nil }
    try keyFile.create(secret)
    return keyFile
  }

  /// A source of only this credential.
  borrowing func source() -> VaultCredentialClosure {
    if case .passphrase = kind {
      return VaultCredentialClosure(passphrase: secret.copy(), named: "the terminal")
    }
    return VaultCredentialClosure(key: secret.copy(), named: "the new key")
  }

  borrowing func credential() -> VaultCredential {
    if case .passphrase = kind { .passphrase(secret.copy()) } else { .key(secret.copy()) }
  }

  /// The secret of the first credential source that has one and whose name satisfies the condition.
  private static func given(
    by isIncluded: (String) -> Bool, _ configuration: CofferConfiguration, _ path: String
  ) throws(SecretError) -> SecretBytes? {
    let future = VaultDescription(path: path, id: String(repeating: "0", count: 32), keySlots: [])
    for source in configuration.credentials() where isIncluded(source.name) {
      if let credential = try source.credential(for: future) { return credential.secret.copy() }
    }
    return nil
  }
}
