internal import Coffer

/// Asks a person on the terminal for a vault's passphrase, where the vault has one.
struct PassphrasePrompt: VaultCredentialSource {
  let name = "the terminal"

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    guard vault.hasPassphrase, Terminal.isThere else { return nil }
    let passphrase = try Terminal().readHidden("Passphrase for \(vault.path): ")
    if passphrase.isEmpty { throw SecretError(.promptDismissed, "No passphrase was entered.") }
    return .passphrase(passphrase)
  }

  /// A new passphrase, asked for twice.
  static func new(for path: String) throws -> SecretBytes {
    let terminal = try Terminal()
    let first = try terminal.readHidden("New passphrase for \(path): ")
    if first.isEmpty { throw SecretError(.promptDismissed, "No passphrase was entered.") }
    let second = try terminal.readHidden("The same again: ")
    guard first.isEqual(to: second) else { throw Failure.usage("The two passphrases differ. Try again.") }
    return first
  }
}

extension VaultDescription {
  var hasPassphrase: Bool { keySlots.contains { $0.kind == .passphrase } }
}
