internal import Coffer

/// What `secret` says to the program that ran it. The numbers are those of sysexits.h, and stable.
enum ExitStatus: Int32, CaseIterable {
  case done = 0
  case noSuchSecret = 1
  case usage = 64
  case damaged = 65
  case noInput = 66
  case unavailable = 69
  case internalError = 70
  case wouldOverwrite = 73
  case inputOutput = 74
  case busy = 75
  case refused = 77
  case configuration = 78

  /// The line of `secret --help`.
  var meaning: String {
    switch self {
    case .done: "done"
    case .noSuchSecret: "no such secret"
    case .usage: "usage: an argument, a name or a value that cannot be taken"
    case .damaged: "the vault is damaged, tampered with, or nothing this version may open"
    case .noInput: "no such vault, or no such input file"
    case .unavailable: "the backend cannot be reached, or cannot do this"
    case .internalError: "an error in secret itself"
    case .wouldOverwrite: "there is something already, which would be overwritten"
    case .inputOutput: "reading or writing failed"
    case .busy: "timed out, or busy"
    case .refused: "locked, wrong key, or denied"
    case .configuration: "the configuration, or the text of a key, is wrong"
    }
  }

  /// The one table from failures to statuses.
  init(_ code: SecretError.Code) {
    self =
      switch code {
      case .invalidIdentifier, .invalidMetadata, .tooLarge: .usage
      case .tampered, .notAVault, .rolledBack, .unsupportedVersion, .costLimitExceeded: .damaged
      case .decodingFailed, .encodingFailed: .damaged
      case .vaultNotFound: .noInput
      case .unavailable, .unsupported: .unavailable
      case .alreadyExists: .wouldOverwrite
      case .io: .inputOutput
      case .timedOut, .conflict: .busy
      case .locked, .wrongKey, .denied, .promptDismissed: .refused
      case .configuration, .invalidKey: .configuration
      default: .internalError
      }
  }
}
