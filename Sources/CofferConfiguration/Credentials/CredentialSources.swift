internal import CofferCore
internal import CofferSystem
package import CofferVault

extension BackendConfiguration {
  /// The sources of a vault's key, in the order in which they are tried.
  ///
  /// The order is that of ``keyVariables``, `$CREDENTIALS_DIRECTORY/coffer.key`, the key file that is recorded for the
  /// vault, in a Flatpak the Secret portal, the kernel keyring, and then `additional`, such as a prompt. Only the
  /// portal, a command and the sources in `additional` may show a prompt.
  ///
  /// A variable that names a missing file, or that is set and empty, is an error: the next source is not tried.
  package func credentials(additional: [VaultCredentialSource] = []) -> [VaultCredentialSource] {
    var sources: [VaultCredentialSource] = []
    func add(
      _ name: String,
      _ read: @escaping @Sendable (VaultCredentialSource.Request) throws(SecretError) -> VaultCredential?
    ) {
      sources.append(VaultCredentialSource(name, read))
    }
    for name in Self.keyVariables {
      guard let text = text(of: name) else { continue }
      add(name) { _ throws(SecretError) in
        if name.hasPrefix("COFFER_KEY") { return try CredentialText.key(in: text(), from: name) }
        return try CredentialText.passphrase(in: text(), from: name)
      }
    }
    if let directory = environment.nonEmpty("CREDENTIALS_DIRECTORY") {
      let path = directory + "/coffer.key"
      add("the systemd credential coffer.key") { _ throws(SecretError) in
        // systemd sets the variable if a unit has any credential, so this one may be missing.
        guard try Path.exists(path) else { return nil }
        return try CredentialText.key(in: CredentialText.read(path, named: "coffer.key"), from: path)
      }
    }
    add(Self.recordedKeyFileSource) { request throws(SecretError) in
      guard let path = try recordedKeyFile(forVault: request.vault.id) else { return nil }
      return try CredentialText.key(in: CredentialText.read(path, named: configurationFile), from: path)
    }
    if let portalSource { sources.append(portalSource) }
    return sources + [KernelKeyring.source] + additional
  }

  package static let recordedKeyFileSource = "the recorded key file"

  /// Returns a function that reads the text for one of ``keyVariables``, or `nil` if the variable is not set.
  private func text(of name: String) -> (@Sendable () throws(SecretError) -> SecretBytes)? {
    if name == "COFFER_KEY", let key { return { () throws(SecretError) in key } }
    guard let value = environment[name] else { return nil }
    let timeout = timeout
    if let descriptor = descriptors[name] { return { () throws(SecretError) in try descriptor.text(timeout: timeout) } }
    if name.hasSuffix("_FILE") { return { () throws(SecretError) in try CredentialText.read(value, named: name) } }
    let environment = environment.without(Self.keyVariables)
    return { () throws(SecretError) in
      try CredentialText.output(of: value, named: name, environment: environment, timeout: timeout)
    }
  }
}
