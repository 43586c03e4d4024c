internal import Coffer

/// What a new vault will open with: the same that will be found when it is used.
struct NewCredential: ~Copyable {
  enum Kind {
    case file(KeyFile)
    case environment
    case passphrase
  }
  let kind: Kind
  private let secret: SecretBytes
  private let mustMakeFile: Bool

  /// Asks for a passphrase, or reads one, or finds or makes a key, as the options of `init` say.
  static func chosen(
    by options: InitCommand,
    _ configuration: CofferConfiguration,
    vault path: String
  ) throws -> NewCredential {
    if options.passphrase {
      if let secret = try given(by: { $0.hasPrefix("COFFER_PASSPHRASE") }, configuration, path) {
        return NewCredential(kind: .passphrase, secret: secret, mustMakeFile: false)
      }
      let secret = try askedFor(path, configuration)
      return NewCredential(kind: .passphrase, secret: secret, mustMakeFile: false)
    }
    if options.keyFile == nil, Environment.value("COFFER_KEY_FILE") == nil,
      let key = try given(by: { $0 == "COFFER_KEY" }, configuration, path)
    {
      return NewCredential(kind: .environment, secret: key, mustMakeFile: false)
    }
    let file = KeyFile(
      path: try Directory.absolute(
        options.keyFile ?? Environment.value("COFFER_KEY_FILE") ?? configuration.defaultKeyFile
      )
    )
    if let key = try file.key() { return NewCredential(kind: .file(file), secret: key, mustMakeFile: false) }
    return NewCredential(kind: .file(file), secret: VaultKey.generate(), mustMakeFile: true)
  }

  var keyFile: KeyFile? {
    if case .file(let file) = kind { file } else { nil }
  }

  /// Makes the key file, where there is none yet, and returns it then.
  borrowing func makeKeyFile() throws(SecretError) -> KeyFile? {
    guard mustMakeFile, let keyFile else { return nil }
    try keyFile.create(secret)
    return keyFile
  }

  borrowing func credential() -> VaultCredential {
    if case .passphrase = kind { .passphrase(secret.copy()) } else { .key(secret.copy()) }
  }

  /// What the first source with a fitting name gives, as it would for the vault once it is there.
  private static func given(
    by isFitting: (String) -> Bool,
    _ configuration: CofferConfiguration,
    _ path: String
  ) throws(SecretError) -> SecretBytes? {
    let future = VaultDescription(path: path, id: String(repeating: "0", count: 32), keySlots: [])
    for source in configuration.credentialSources() where isFitting(source.name) {
      if let credential = try source.credential(for: future) { return credential.secret.copy() }
    }
    return nil
  }

  private static func askedFor(
    _ path: String,
    _ configuration: CofferConfiguration
  ) throws -> SecretBytes {
    guard configuration.mayPrompt, Terminal.isThere else {
      throw SecretError(
        .locked,
        "There is no passphrase, and nobody may be asked.",
        advice: "Set COFFER_PASSPHRASE_FILE, COFFER_PASSPHRASE_FD or COFFER_PASSPHRASE_COMMAND."
      )
    }
    return try PassphrasePrompt.new(for: path)
  }
}
