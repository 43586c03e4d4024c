internal import Coffer

/// A secret in transfer between a backend and a file.
struct ExchangedSecret {
  let identifier: SecretIdentifier
  let value: SecretBytes
  /// `nil` if the file's format has no metadata.
  var metadata: SecretMetadata?
  /// The variable that a project's file gives it. `nil`: the name of the secret decides.
  var variable: String?
}
