internal import Coffer
internal import CofferConfiguration
internal import CofferVault

/// Advice about this tool for the errors of the libraries, whose own advice is about their API.
enum Advice {
  /// The command to use after an error, as a sentence.
  private static func command(for code: SecretError.Code, after advice: String?) -> String? {
    switch code {
    case .vaultNotFound: "To create a vault: secret init"
    case .rolledBack, .unexpectedVault, .unexpectedKey, .unverifiable:
      // A decision cannot be recorded in a directory that cannot be used.
      advice?.hasSuffix(SecretError.trustAdvice) == true ? "To confirm it: secret trust" : nil
    case .unavailable: "To use a vault instead: secret init"
    case .ambiguous: "To remove or move all of them: --all"
    default: nil
    }
  }

  /// The advice that replaces the library's.
  private static func replacement(for code: SecretError.Code) -> String? {
    switch code {
    case .noBackend:
      CofferConfiguration.current().isInFlatpak
        ? "To create a vault that the Secret portal opens: secret init --portal"
        : "To create a vault: secret init"
    case .kernelKeyringRefused: "Use a key file instead: secret key add --key-file PATH"
    default: nil
    }
  }

  /// What to do about an error: the library's advice, and the command to use.
  static func advice(_ advice: String?, for code: SecretError.Code?) -> String? {
    if let replacement = code.flatMap(replacement) { return replacement }
    let sentences = [advice, code.flatMap { command(for: $0, after: advice) }].compactMap { $0 }
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }

  /// What happened, and what to do about it.
  static func message(for error: SecretError) -> String {
    [error.reason, advice(error.advice, for: error.code)].compactMap { $0 }.joined(separator: " ")
  }
}
