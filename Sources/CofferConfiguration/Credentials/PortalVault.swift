public import CofferCore
internal import CofferSystem
public import CofferVault

#if Keyring
internal import CofferKeyring
#endif

/// In a Flatpak, a vault in the application's own directory takes the place of the keyring, which is not visible there.
/// Its key is derived from the secret that the Secret portal keeps for the application in the user's keyring.
extension BackendConfiguration {
  /// Whether this process runs in a Flatpak.
  package var isInFlatpak: Bool { FileStatus(of: flatpakInfo) != nil }

  /// Whether a vault can be made with ``createPortalVault(at:options:)``: in a Flatpak whose session bus has the Secret
  /// portal.
  ///
  /// Throws `.timedOut` if the bus does not answer. Blocks for at most 5 seconds. Thread-safe.
  public func hasSecretPortal() throws(SecretError) -> Bool {
    #if Keyring
    guard isInFlatpak else { return false }
    return try SecretPortal(environment: environmentWithoutKeys).isAvailable(timeout: .seconds(5))
    #else
    return false
    #endif
  }

  /// Creates a vault at `path`, `COFFER_VAULT` or the default path. It has two key slots: one that the Secret portal
  /// opens, and one for the recovery key that is returned.
  ///
  /// From then on, the application opens the vault without giving a key. Show the user the recovery key as
  /// `VaultKey.text(of:)`, once. If the user resets the keyring, the portal gives another secret, and only the recovery
  /// key opens the vault: see ``restorePortalVault(at:recoveryKey:)``.
  ///
  /// The portal may show a prompt for the password of the user's keyring. Blocks for at most a minute for the portal.
  /// Throws `.unsupported` outside of a Flatpak or without the portal, `.promptDismissed`, `.timedOut`, and what
  /// `VaultBackend.create` throws.
  public func createPortalVault(
    at path: String? = nil, options: VaultOptions = VaultOptions()
  ) throws(SecretError) -> SecretBytes {
    let path = path ?? vaultPath
    let key = try portalKey()
    let recovery = VaultKey.generate()
    try PrivateDirectory.create(Path.parent(of: path))
    try createVault(at: path, credential: .key(key), label: Self.portalLabel, options: options)
    do throws(SecretError) {
      let source = VaultCredentialSource("the given key", .key(key))
      try vault(at: path, credentials: [source], options: options).addKeySlot(.key(recovery), label: "recovery")
    } catch {
      throw SecretError(
        error.code, "The vault \(path) was created, but has no recovery key: \(error.reason)",
        advice: "Remove it while it is empty, or add another key.", effect: .changed)
    }
    return recovery
  }

  /// Lets the Secret portal open the vault at `path`, `COFFER_VAULT` or the default path again. Needs the recovery key
  /// that ``createPortalVault(at:options:)`` returned. That key remains valid.
  ///
  /// Throws `.wrongKey` if the key does not open the vault, `.alreadyExists` if the portal opens it already, and what
  /// ``createPortalVault(at:options:)`` throws.
  public func restorePortalVault(at path: String? = nil, recoveryKey: SecretBytes) throws(SecretError) {
    let key = try portalKey()
    let source = VaultCredentialSource("the given key", .key(recoveryKey))
    try vault(at: path, credentials: [source]).addKeySlot(.key(key), label: Self.portalLabel)
  }

  private static let portalLabel = "Secret portal"

  /// The source of the portal's key, or `nil` outside of a Flatpak, or if no prompt may be shown.
  var portalSource: VaultCredentialSource? {
    guard isInFlatpak, mayPrompt else { return nil }
    return VaultCredentialSource("the Secret portal", mayPrompt: true) { request throws(SecretError) in
      // The portal may show a prompt, so it is used only for a vault that has its key slot.
      guard request.vault.keySlots.contains(where: { $0.label == Self.portalLabel }), try hasSecretPortal() else {
        return nil
      }
      return .key(try portalKey())
    }
  }

  private func portalKey() throws(SecretError) -> SecretBytes {
    #if Keyring
    guard mayPrompt else {
      throw SecretError(
        .locked, "The Secret portal may show a prompt, and COFFER_NO_PROMPT is set.", advice: "Unset it.")
    }
    if try hasSecretPortal() {
      let portal = SecretPortal(environment: environmentWithoutKeys)
      let token = try PrivateFile.text(of: tokenFile, as: "The file \(tokenFile)", limit: 4096)
      let answer = try portal.retrieve(token: token, timeout: timeout)
      if let new = answer.token, new != token {
        try PrivateDirectory.create(configurationDirectory)
        try PrivateFile.write(new.utf8.span, to: tokenFile, replacing: true)
      }
      return VaultKey.derived(fromPortal: answer.secret)
    }
    #endif
    throw SecretError(
      .unsupported, "This program is not in a Flatpak with the Secret portal.",
      advice: "Use a vault with a key file, or the keyring.")
  }

  /// The file with the portal's token. The token identifies the secret in the next call. It is not secret.
  private var tokenFile: String { configurationDirectory + "/portal-token" }
}
