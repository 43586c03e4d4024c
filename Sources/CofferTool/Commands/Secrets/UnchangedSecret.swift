internal import Coffer

extension SecretTransaction {
  /// Stores a secret, unless it has this value and this metadata already. A program that tries again and again would
  /// otherwise drop the earlier versions. The end of the transaction makes sure that the secret is on the disk.
  func storeIfChanged(
    _ value: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata? = nil
  ) throws(SecretError) {
    if let existing = try item(identifier)?.metadata {
      var wanted = metadata ?? existing
      (wanted.created, wanted.modified) = (existing.created, existing.modified)
      do throws(SecretError) {
        if wanted == existing, let stored = try lookUp(identifier), stored.isEqual(to: value) { return }
      } catch  where error.code == .tampered {}  // a damaged value is replaced
    }
    try store(value, for: identifier, metadata: metadata)
  }
}

extension SecretBackend {
  /// Stores a secret by ``SecretTransaction/storeIfChanged(_:for:metadata:)``, in a transaction.
  func storeIfChanged(_ value: borrowing SecretBytes, for identifier: SecretIdentifier) throws(SecretError) {
    try withTransaction { transaction throws(SecretError) in
      try transaction.storeIfChanged(value, for: identifier)
    }
  }
}
