internal import Coffer
internal import CofferSystem

extension SecretError {
  /// What to do about an error of the libraries: their advice, which is about their API, and the command to use. For
  /// some codes, a text that replaces their advice.
  var toolAdvice: String? {
    let command: String
    switch code {
    case .noBackend:
      return BackendConfiguration.current().isInFlatpak
        ? "To create a vault that the Secret portal opens: secret init --portal"
        : "To create a vault: secret init"
    case .kernelKeyringRefused: return "Use a key file instead: secret key add --key-file PATH"
    case .vaultNotFound: command = "To create a vault: secret init"
    case .unavailable:
      command = remedy == .diagnosis ? "To examine it: secret doctor" : "To use a vault instead: secret init"
    case .ambiguous: command = "To remove or move all of them: --all"
    default:
      switch remedy {
      case .trust(let path): command = "To confirm it: secret trust --vault \(path.quotedForShell)"
      case .diagnosis: command = "To print the line: secret doctor"
      case nil: return advice
      }
    }
    return advice.map { "\($0) \(command)" } ?? command
  }

  /// What happened, and what to do about it.
  var toolMessage: String { [reason, toolAdvice].compactMap(\.self).joined(separator: " ") }
}
