internal import Coffer

/// Advice about this tool for the errors of the libraries, whose own advice is about their API.
enum Advice {
  /// What to do about an error: the library's advice with the command to use, or what replaces the library's advice.
  static func advice(_ advice: String?, for code: SecretError.Code) -> String? {
    let command: String
    switch code {
    case .noBackend:
      return CofferConfiguration.current().isInFlatpak
        ? "To create a vault that the Secret portal opens: secret init --portal"
        : "To create a vault: secret init"
    case .kernelKeyringRefused: return "Use a key file instead: secret key add --key-file PATH"
    case .vaultNotFound: command = "To create a vault: secret init"
    case .rolledBack, .unexpectedVault, .unexpectedKey, .unverifiable, .untrusted:
      // A decision cannot be recorded in a directory that cannot be used.
      if advice?.hasSuffix(SecretError.trustAdvice) != true { return advice }
      command = "To confirm it: secret trust"
    case .unavailable: command = "To use a vault instead: secret init"
    case .ambiguous: command = "To remove or move all of them: --all"
    default: return advice
    }
    return advice.map { "\($0) \(command)" } ?? command
  }

  /// What happened, and what to do about it.
  static func message(for error: SecretError) -> String {
    [error.reason, advice(error.advice, for: error.code)].compactMap { $0 }.joined(separator: " ")
  }
}
