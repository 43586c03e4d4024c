internal import Coffer
internal import Synchronization

/// A credential source that records its name when it returns a key or a passphrase.
struct RecordingSource: VaultCredentialSource {
  /// The name of the last source that returned a key or a passphrase. Thread-safe.
  final class Record: Sendable {
    private let state = Mutex<String?>(nil)
    var name: String? { state.withLock { $0 } }
    fileprivate func set(_ name: String) { state.withLock { $0 = name } }
  }

  let source: any VaultCredentialSource
  let record: Record

  var name: String { source.name }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    guard let credential = try source.credential(for: vault) else { return nil }
    if credential.kind != .masterKey { record.set(source.name) }
    return credential
  }
}
