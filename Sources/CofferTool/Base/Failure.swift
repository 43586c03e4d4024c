internal import Coffer

/// A command's failure that is not a backend's error.
struct Failure: Error {
  let status: ExitStatus
  /// Full sentences: what happened. Never contains a value.
  let reason: String
  /// Full sentences: what to do.
  let advice: String?
  let effect: SecretError.Effect

  init(_ status: ExitStatus, _ reason: String, advice: String? = nil, effect: SecretError.Effect = .none) {
    (self.status, self.reason, self.advice, self.effect) = (status, reason, advice, effect)
  }

  var message: String { message(with: effect == .none ? nil : effect.sentence) }

  func message(with effect: String?) -> String {
    [reason, effect, advice].compactMap(\.self).joined(separator: " ")
  }

  static func usage(_ reason: String, advice: String? = nil) -> Failure { Failure(.usage, reason, advice: advice) }

  /// The failure if options that exclude each other are given. `options` names them, with “and” before the last.
  static func exclusive(_ options: String) -> Failure {
    .usage("\(options) exclude each other. Use one of them.")
  }

  /// The failure to replace a secret without `--force`.
  static func exists(_ identifier: SecretIdentifier) -> Failure {
    Failure(
      .wouldOverwrite,
      "There is already a secret “\(identifier.account)” in the service “\(identifier.service)”.",
      advice: "Add --force to replace it.")
  }

  /// The failure for an empty value for `identifier`, which is not stored: a program that failed may have written it.
  static func empty(
    _ reason: String, _ identifier: SecretIdentifier, in backend: any SecretBackend, advice: String
  ) throws(SecretError) -> Failure {
    let kept = try backend.item(identifier) == nil ? "" : " The secret “\(identifier.account)” keeps its value."
    return .usage("\(reason).\(kept)", advice: advice)
  }

  /// Converts a backend's error, and adds this tool's advice. Keeps a `Failure` as it is. `nil` for any other error.
  init?(_ error: any Error) {
    switch error {
    case let error as SecretError:
      self.init(ExitStatus(error.code), error.reason, advice: error.toolAdvice, effect: error.effect)
    case let failure as Failure: self = failure
    default: return nil
    }
  }
}
