internal import Coffer

/// Prompts for a vault's passphrase on the terminal.
struct PassphrasePrompt: VaultCredentialSource {
  let name = "the terminal"
  let mayPrompt = true

  /// Returns `nil` without a prompt if the vault has no passphrase or the process has no terminal.
  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    guard vault.hasPassphrase, Terminal.isAvailable else { return nil }
    let passphrase = try Terminal().readLine("Passphrase for \(vault.path): ")
    if passphrase.isEmpty { throw SecretError(.promptDismissed, "No passphrase was entered.") }
    return .passphrase(passphrase)
  }

  /// Prompts for a new passphrase twice.
  static func new(for path: String) throws -> SecretBytes {
    let terminal = try Terminal()
    let first = try terminal.readLine("New passphrase for \(path): ")
    if first.isEmpty { throw SecretError(.promptDismissed, "No passphrase was entered.") }
    let second = try terminal.readLine("Repeat the passphrase: ")
    guard first.isEqual(to: second) else { throw Failure.usage("The two passphrases differ. Try again.") }
    return first
  }
}

extension VaultDescription {
  var hasPassphrase: Bool { keySlots.contains { $0.kind == .passphrase } }
}
