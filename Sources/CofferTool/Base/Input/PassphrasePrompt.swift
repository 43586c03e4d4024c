internal import Coffer

/// Prompts for passphrases on the terminal.
enum PassphrasePrompt {
  private static let attempts = 3

  /// Prompts for a vault's passphrase, unless the vault has none or the process has no terminal.
  static let source = VaultCredentialSource("the terminal", mayPrompt: true, attempts: attempts) {
    request throws(SecretError) in
    guard request.vault.hasPassphrase, Terminal.isAvailable else { return nil }
    let left = attempts - request.failures
    let question = request.failures == 0 ? "" : "It does not open the vault. Try again (\(left) left). "
    let passphrase = try Terminal().readLine("\(question)Passphrase for \(request.vault.path): ")
    if passphrase.isEmpty { throw SecretError(.promptDismissed, "No passphrase was entered.") }
    return .passphrase(passphrase)
  }

  /// Throws for fewer than 8 characters, the least that NIST SP 800-63B permits.
  static func check(_ passphrase: borrowing SecretBytes) throws(Failure) {
    // Every byte of UTF-8 but those that continue a character.
    let count = passphrase.withBytes { bytes in bytes.indices.count { bytes[$0] & 0xC0 != 0x80 } }
    let advice = "Take eight random words, as secret generate --words 8 --print NAME makes them."
    if count < 8 { throw .usage("A new passphrase must have at least 8 characters.", advice: advice) }
    if count < 12 { note("The passphrase has fewer than 12 characters, so it may be guessed. \(advice)") }
  }

  /// Prompts for a new passphrase twice.
  static func new(for path: String) throws -> SecretBytes {
    let terminal = try Terminal()
    let first = try terminal.readLine("New passphrase for \(path): ")
    if first.isEmpty { throw SecretError(.promptDismissed, "No passphrase was entered.") }
    try check(first)
    let second = try terminal.readLine("Repeat the passphrase: ")
    guard first.isEqual(to: second) else { throw Failure.usage("The two passphrases differ. Try again.") }
    return first
  }
}

extension VaultDescription {
  var hasPassphrase: Bool { keySlots.contains { $0.kind == .passphrase } }
}
