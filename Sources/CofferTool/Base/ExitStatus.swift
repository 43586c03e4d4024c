internal import Coffer

/// The exit statuses of `secret`: stable, with the numbers of sysexits.h.
enum ExitStatus: Int32, CaseIterable, Encodable {
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
  case interrupted = 130

  /// The text of `secret --help`.
  var meaning: String {
    switch self {
    case .done: "success"
    case .noSuchSecret: "no such secret"
    case .usage: "wrong usage: an invalid argument, name or value"
    case .damaged: "damaged or tampered data, or a format that this version cannot read"
    case .noInput: "no such vault or input file"
    case .unavailable: "the backend cannot be reached or does not support the operation, or the editor failed"
    case .internalError: "an error in secret itself"
    case .wouldOverwrite: "existing data would be overwritten"
    case .inputOutput: "reading or writing failed"
    case .busy: "timed out, or busy"
    case .refused: "locked, wrong key, or access denied"
    case .configuration: "invalid configuration, or invalid text of a key"
    case .interrupted: "a prompt was left with Ctrl-D"
    }
  }

  /// The status for an error of the libraries.
  init(_ code: SecretError.Code) {
    self =
      switch code {
      case .invalidIdentifier, .invalidMetadata, .tooLarge, .ambiguous, .invalidURL: .usage
      case .tampered, .notAVault, .unsupportedVersion, .costLimitExceeded: .damaged
      case .rolledBack, .unexpectedVault, .unexpectedKey, .unverifiable: .damaged
      case .decodingFailed, .encodingFailed: .damaged
      case .vaultNotFound: .noInput
      case .unavailable, .unsupported, .kernelKeyringRefused: .unavailable
      case .alreadyExists: .wouldOverwrite
      case .io: .inputOutput
      case .timedOut, .conflict, .outcomeUnknown: .busy
      case .locked, .wrongKey, .denied, .untrusted, .promptDismissed: .refused
      case .configuration, .noBackend, .invalidKey: .configuration
      case .endOfInput: .interrupted
      default: .internalError
      }
  }
}
