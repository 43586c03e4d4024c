public import CofferCore

extension VaultBackend: ClosableSecretBackend {
  /// Closes the vault's file and wipes its keys from memory.
  ///
  /// Waits for a call of another thread, and for the disk if another program has changed the vault. The next call opens
  /// the vault again, with its credentials. The vault remembers and records which state it has seen, and refuses an
  /// older one. Leases and streams of changes stay: the file is still watched while a stream exists.
  public func close() throws(SecretError) {
    try withSession { session in session.closeAndForgetKeys() }
  }
}
