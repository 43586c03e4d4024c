internal import Coffer

/// Advice about this tool for the errors of the libraries, whose own advice is about their API.
enum Advice {
  /// The command to use after an error, as a sentence.
  private static func command(for code: SecretError.Code) -> String? {
    switch code {
    case .vaultNotFound: "To create a vault: secret init"
    case .rolledBack: "If you restored a backup: secret accept-rollback"
    case .unavailable: "To use a vault instead: secret init"
    default: nil
    }
  }

  /// What to do about an error: the library's advice, and the command to use.
  static func advice(for error: SecretError) -> String? {
    let sentences = [error.advice, command(for: error.code)].compactMap { $0 }
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }

  /// What to do if the kernel keyring cannot be used.
  static let keyFileInstead = "Use a key file instead: secret key add --key-file PATH"

  /// Runs `body`, which uses the kernel keyring, and gives that advice if the system refuses.
  static func withoutKernelKeyring<R>(_ body: () throws(SecretError) -> R) throws(SecretError) -> R {
    do throws(SecretError) { return try body() } catch {
      if error.code != .unavailable { throw error }
      throw SecretError(.unsupported, error.reason, advice: keyFileInstead)
    }
  }

  /// What happened, and what to do about it.
  static func message(for error: SecretError) -> String {
    [error.reason, advice(for: error)].compactMap { $0 }.joined(separator: " ")
  }
}
