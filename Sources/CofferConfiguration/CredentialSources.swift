internal import CofferCore
public import CofferVault

extension CofferConfiguration {
  /// The places that a vault's key may come from, in the order in which they are tried: `COFFER_KEY_FILE`,
  /// `COFFER_KEY`, `COFFER_PASSPHRASE_FD`, `COFFER_PASSPHRASE_FILE`, `COFFER_PASSPHRASE_COMMAND`,
  /// `$CREDENTIALS_DIRECTORY/coffer.key`, the key file that was recorded for the vault, what
  /// `secret unlock` keeps in the kernel, and then `extra`, such as a prompt. No source asks a person.
  ///
  /// A variable that names a file which is not there is an error, and no reason to go on to the next source;
  /// and so is one that is set and empty, as a CI system leaves it where a secret is not to be had.
  public func credentialSources(
    extra: [any VaultCredentialSource] = []
  ) -> [any VaultCredentialSource] {
    var sources: [any VaultCredentialSource] = []
    if let path = environment["COFFER_KEY_FILE"] {
      sources.append(
        CredentialSource(name: "COFFER_KEY_FILE") { _ throws(SecretError) in
          try .key(Self.key(in: SecretFile.read(path, named: "COFFER_KEY_FILE"), from: "COFFER_KEY_FILE"))
        }
      )
    }
    if let key {
      sources.append(
        CredentialSource(name: "COFFER_KEY") { _ throws(SecretError) in
          try .key(Self.key(in: key.bytes.copy(), from: "COFFER_KEY"))
        }
      )
    }
    if let descriptor {
      let timeout = timeout
      sources.append(
        CredentialSource(name: "COFFER_PASSPHRASE_FD") { _ throws(SecretError) in
          let text = try descriptor.text(timeout: timeout)
          return try .passphrase(Self.passphrase(in: text, from: "COFFER_PASSPHRASE_FD"))
        }
      )
    }
    if let path = environment["COFFER_PASSPHRASE_FILE"] {
      sources.append(
        CredentialSource(name: "COFFER_PASSPHRASE_FILE") { _ throws(SecretError) in
          let text = try SecretFile.read(path, named: "COFFER_PASSPHRASE_FILE")
          return try .passphrase(Self.passphrase(in: text, from: "COFFER_PASSPHRASE_FILE"))
        }
      )
    }
    if let command = environment["COFFER_PASSPHRASE_COMMAND"] {
      let (environment, timeout) = (environment.without(Self.keyVariables), timeout)
      sources.append(
        CredentialSource(name: "COFFER_PASSPHRASE_COMMAND") { _ throws(SecretError) in
          let text = try PassphraseCommand(command).run(environment: environment, timeout: timeout)
          return try .passphrase(Self.passphrase(in: text, from: "COFFER_PASSPHRASE_COMMAND"))
        }
      )
    }
    if let directory = environment.nonEmpty("CREDENTIALS_DIRECTORY") {
      let path = directory + "/coffer.key"
      sources.append(
        CredentialSource(name: "the systemd credential coffer.key") { _ throws(SecretError) in
          // systemd sets the variable for whatever credentials a unit has: this one need not be among them.
          guard try FileAccess.exists(path) else { return nil }
          return try .key(Self.key(in: SecretFile.read(path, named: "coffer.key"), from: path))
        }
      )
    }
    sources.append(
      CredentialSource(name: "the recorded key file") { vault throws(SecretError) in
        guard let path = try recordedKeyFile(forVault: vault.id) else { return nil }
        return try .key(Self.key(in: SecretFile.read(path, named: configurationFile), from: path))
      }
    )
    sources.append(KernelKeyringSource())
    return sources + extra
  }

  private static func key(in text: consuming SecretBytes, from name: String) throws(SecretError)
    -> SecretBytes
  {
    let text = text
    try requireText(text, from: name)
    do throws(SecretError) {
      return try VaultKey.parse(text)
    } catch {
      throw SecretError(error.code, "\(name) does not hold a key: \(error.reason)", advice: error.advice)
    }
  }

  /// The passphrase in `text`, which may end in one LF that is not part of it.
  private static func passphrase(
    in text: consuming SecretBytes,
    from name: String
  ) throws(SecretError) -> SecretBytes {
    let text = text
    let length = text.withBytes { $0.isEmpty || $0[$0.count - 1] != 10 ? $0.count : $0.count - 1 }
    let passphrase = text.prefix(length)
    try requireText(passphrase, from: name)
    return passphrase
  }

  private static func requireText(_ text: borrowing SecretBytes, from name: String) throws(SecretError) {
    if text.isEmpty {
      throw SecretError(
        .configuration,
        "\(name) is set, and empty.",
        advice: "Give it the vault's key or passphrase, or unset it."
      )
    }
  }
}

/// A source that is a name and a closure.
private struct CredentialSource: VaultCredentialSource {
  let name: String
  let read: @Sendable (VaultDescription) throws(SecretError) -> VaultCredential?

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? { try read(vault) }
}

extension SecretBytes {
  /// The first `length` bytes, in guarded memory of their own.
  borrowing func prefix(_ length: Int) -> SecretBytes {
    withBytes { SecretBytes(copying: $0.extracting(first: length)) }
  }
}
