internal import Coffer

/// A command's failure that is not a backend's error.
struct Failure: Error {
  let status: ExitStatus
  /// Full sentences: what happened, and what to do. Never contains a value.
  let message: String

  init(_ status: ExitStatus, _ message: String) { (self.status, self.message) = (status, message) }

  static func usage(_ message: String) -> Failure { Failure(.usage, message) }

  /// The failure if options that exclude each other are given. `options` names them, with “and” before the last.
  static func exclusive(_ options: String) -> Failure {
    .usage("\(options) exclude each other. Use one of them.")
  }

  /// The failure to replace a secret without `--force`.
  static func exists(_ identifier: SecretIdentifier) -> Failure {
    Failure(
      .wouldOverwrite,
      """
      There is already a secret “\(identifier.account)” in the service “\(identifier.service)”, and nothing was changed. \
      Add --force to replace it.
      """)
  }

  /// The failure for an empty value for `identifier`, which is not stored: a program that failed may have written it.
  /// `reason` is a clause for the message.
  static func empty(
    _ reason: String, _ identifier: SecretIdentifier, in backend: any SecretBackend, advice: String
  ) throws(SecretError) -> Failure {
    let kept = try backend.item(identifier) == nil ? "" : " The secret “\(identifier.account)” keeps its value."
    return .usage("\(reason), and nothing was stored.\(kept) \(advice)")
  }

  /// Converts a backend's error, and adds this tool's advice. Keeps a `Failure` as it is. `nil` for any other error.
  init?(_ error: any Error) {
    switch error {
    case let error as SecretError: self.init(ExitStatus(error.code), error.toolMessage)
    case let failure as Failure: self = failure
    default: return nil
    }
  }
}
