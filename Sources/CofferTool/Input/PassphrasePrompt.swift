internal import Coffer

/// Prompts for a vault's passphrase on the terminal.
struct PassphrasePrompt: VaultCredentialSource {
  let name = "the terminal"
  let mayPrompt = true

  /// How often the passphrase may be entered.
  private static let attempts = 3

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    try credential(for: vault, after: 0)
  }

  /// Returns `nil` without a prompt if the vault has no passphrase or the process has no terminal, and after too many wrong
  /// ones.
  func credential(
    for vault: VaultDescription, after failures: Int
  ) throws(SecretError) -> VaultCredential? {
    guard vault.hasPassphrase, Terminal.isAvailable, failures < Self.attempts else { return nil }
    let question =
      failures == 0 ? "" : "It does not open the vault. Try again (\(Self.attempts - failures) left). "
    let passphrase = try Terminal().readLine("\(question)Passphrase for \(vault.path): ")
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
