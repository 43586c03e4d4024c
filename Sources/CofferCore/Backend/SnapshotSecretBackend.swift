/// A backend that can read the secrets of a service as they are at one moment.
package protocol SnapshotSecretBackend: SecretBackend {
  /// Returns every secret in `service`. No change of another thread or process lies between two of the values. Throws an
  /// error of the store.
  func snapshot(ofService service: String) throws(SecretError) -> [SecretIdentifier: SharedSecret]
}

extension SecretBackend {
  /// Returns every secret in `service`: as of one moment from a ``SnapshotSecretBackend``, and one by one from others.
  /// Throws an error of the store.
  package func secrets(inService service: String) throws(SecretError) -> [SecretIdentifier: SharedSecret] {
    if let backend = self as? any SnapshotSecretBackend { return try backend.snapshot(ofService: service) }
    var secrets: [SecretIdentifier: SharedSecret] = [:]
    for item in try items(inService: service) {
      // Another process may have removed the secret since it was listed.
      guard let secret = try lookUp(item.identifier) else { continue }
      secrets[item.identifier] = SharedSecret(secret)
    }
    return secrets
  }
}
