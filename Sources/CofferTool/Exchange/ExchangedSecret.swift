internal import Coffer

/// A secret in transfer between a backend and a file.
struct ExchangedSecret {
  let identifier: SecretIdentifier
  let value: SharedSecret
  /// `nil` if the file's format has no metadata.
  let metadata: SecretMetadata?
}
