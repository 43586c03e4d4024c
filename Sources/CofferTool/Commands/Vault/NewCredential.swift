internal import Coffer
internal import CofferSystem

/// The credential for a new vault. It comes from the sources that will open the vault later.
struct NewCredential: ~Copyable {
  enum Kind {
    case file(KeyFile, isNew: Bool)
    case environment
    case passphrase
    case recipients
  }
  let kind: Kind
  private let credential: VaultCredential

  /// Reads, prompts for or generates a passphrase or key, as the options of `init` request.
  static func chosen(
    by options: InitCommand, _ recipients: [VaultRecipient], vault path: String
  ) throws -> NewCredential {
    let configuration = BackendConfiguration.current()
    if options.passphrase {
      if let given = try given(by: "COFFER_PASSPHRASE", path) {
        try PassphrasePrompt.check(given.secret)
        return NewCredential(kind: .passphrase, credential: given)
      }
      guard configuration.canPrompt else {
        throw SecretError(
          .locked, "There is no passphrase, and a prompt is not possible.",
          advice: "Set COFFER_PASSPHRASE_FILE, COFFER_PASSPHRASE_FD or COFFER_PASSPHRASE_COMMAND.")
      }
      return NewCredential(kind: .passphrase, credential: .passphrase(try PassphrasePrompt.new(for: path)))
    }
    if options.keyFile == nil, let recipient = recipients.first {
      return NewCredential(kind: .recipients, credential: .recipient(recipient))
    }
    if options.keyFile == nil, configuration.keyFile == nil, let given = try given(by: "COFFER_KEY", path) {
      return NewCredential(kind: .environment, credential: given)
    }
    let file = try KeyFile(
      path: try Path.absolute(options.keyFile ?? configuration.keyFile ?? configuration.defaultKeyFile))
    let existing = try file.credential()
    return NewCredential(kind: .file(file, isNew: existing == nil), credential: existing ?? .key(VaultKey.generate()))
  }

  var keyFile: KeyFile? {
    if case .file(let file, _) = kind { file } else { nil }
  }

  /// Creates the key file and returns it, or returns `nil` if the key has another source.
  borrowing func createKeyFile() throws(SecretError) -> KeyFile? {
    guard case .file(let file, isNew: true) = kind else { return nil }
    try file.create(credential.secret)
    return file
  }

  /// A source of only this credential. A recipient opens nothing.
  borrowing func source() -> VaultCredentialSource {
    VaultCredentialSource("the credential of the new vault", credential)
  }

  /// Creates a vault that this credential and `recipients` open. Identities get slots as recipients.
  borrowing func createVault(
    at path: String, _ recipients: [VaultRecipient], _ options: VaultOptions
  ) throws(SecretError) -> Bool {
    var (credential, recipients) = (credential, try credential.recipients() + recipients)
    if credential.secret.isEmpty { credential = .recipient(recipients.removeFirst()) }
    return try BackendConfiguration.current().createVault(
      at: path, credential: credential, recipients: recipients, options: options)
  }

  /// The credential of the first credential source that has one and whose name begins with `prefix`.
  private static func given(by prefix: String, _ path: String) throws(SecretError) -> VaultCredential? {
    let future = VaultDescription(path: path, id: String(repeating: "0", count: 32))
    for source in BackendConfiguration.current().credentials() where source.name.hasPrefix(prefix) {
      if let credential = try source.credential(for: future) { return credential }
    }
    return nil
  }
}
