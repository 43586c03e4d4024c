internal import Coffer

/// Refuses a value that is empty by mistake, such as the output of a program that failed.
enum EmptyValue {
  /// The failure to store an empty value for `identifier`. `reason` is a clause for the message.
  static func failure(
    _ reason: String, _ identifier: SecretIdentifier, in backend: any SecretBackend, advice: String
  ) throws(SecretError) -> Failure {
    let kept =
      try backend.item(identifier) == nil ? "" : " The secret “\(identifier.account)” keeps its value."
    return .usage("\(reason), and nothing was stored.\(kept) \(advice)")
  }
}
