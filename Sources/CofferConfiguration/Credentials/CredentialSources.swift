internal import CofferCore
internal import CofferSystem
public import CofferVault

extension CofferConfiguration {
  /// The places that a vault's key may come from, in the order in which they are tried.
  ///
  /// The order is `COFFER_KEY_FILE`, `COFFER_KEY`, `COFFER_PASSPHRASE_FD`, `COFFER_PASSPHRASE_FILE`,
  /// `COFFER_PASSPHRASE_COMMAND`, `$CREDENTIALS_DIRECTORY/coffer.key`, the key file that is recorded for the
  /// vault, in a Flatpak the Secret portal, the kernel keyring, and then `additional`, such as a prompt. No source but
  /// the portal and those of `additional` asks a person.
  ///
  /// A variable that names a missing file, or that is set and empty, is an error: the next source is not
  /// tried.
  public func credentials(
    additional: [any VaultCredentialSource] = []
  ) -> [any VaultCredentialSource] {
    var sources: [any VaultCredentialSource] = []
    func add(
      _ name: String,
      _ read: @escaping @Sendable (VaultDescription) throws(SecretError) -> VaultCredential?
    ) {
      sources.append(VaultCredentialClosure(name: name, read))
    }
    if let path = environment["COFFER_KEY_FILE"] {
      add("COFFER_KEY_FILE") { _ throws(SecretError) in
        let text = try CredentialText.read(path, named: "COFFER_KEY_FILE")
        return try CredentialText.key(in: text, from: "COFFER_KEY_FILE")
      }
    }
    if let key {
      add("COFFER_KEY") { _ throws(SecretError) in
        try CredentialText.key(in: key.bytes.copy(), from: "COFFER_KEY")
      }
    }
    if let descriptor {
      let timeout = timeout
      add("COFFER_PASSPHRASE_FD") { _ throws(SecretError) in
        let text = try descriptor.text(timeout: timeout)
        return try CredentialText.passphrase(in: text, from: "COFFER_PASSPHRASE_FD")
      }
    }
    if let path = environment["COFFER_PASSPHRASE_FILE"] {
      add("COFFER_PASSPHRASE_FILE") { _ throws(SecretError) in
        let text = try CredentialText.read(path, named: "COFFER_PASSPHRASE_FILE")
        return try CredentialText.passphrase(in: text, from: "COFFER_PASSPHRASE_FILE")
      }
    }
    if let command = environment["COFFER_PASSPHRASE_COMMAND"] {
      let (environment, timeout) = (environment.without(Self.keyVariables), timeout)
      add("COFFER_PASSPHRASE_COMMAND") { _ throws(SecretError) in
        try CredentialText.require(!command.isEmpty, of: "COFFER_PASSPHRASE_COMMAND", "a shell command")
        let text = try PassphraseCommand(command).run(environment: environment, timeout: timeout)
        return try CredentialText.passphrase(in: text, from: "COFFER_PASSPHRASE_COMMAND")
      }
    }
    if let directory = environment.nonEmpty("CREDENTIALS_DIRECTORY") {
      let path = directory + "/coffer.key"
      add("the systemd credential coffer.key") { _ throws(SecretError) in
        // systemd sets the variable for any credential of a unit, so this one may be missing.
        guard try Path.exists(path) else { return nil }
        return try CredentialText.key(in: CredentialText.read(path, named: "coffer.key"), from: path)
      }
    }
    add("the recorded key file") { vault throws(SecretError) in
      guard let path = try recordedKeyFile(forVault: vault.id) else { return nil }
      return try CredentialText.key(in: CredentialText.read(path, named: configurationFile), from: path)
    }
    if let portalSource { sources.append(portalSource) }
    return sources + [KernelKeyringSource()] + additional
  }
}
