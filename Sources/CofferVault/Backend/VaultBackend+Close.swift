public import CofferCore

extension VaultBackend: ClosableSecretBackend {
  /// Closes the vault's file and wipes its keys from memory.
  ///
  /// Waits for a call of another thread, and for the disk if another program has changed the vault. The next call opens
  /// the vault again, with its credentials. The object still refuses a state that is older than the newest one that it has
  /// seen. Leases and streams of changes stay: the file is watched while a stream exists.
  ///
  /// Throws `.timedOut` if a call of another thread takes too long, and `.conflict` inside a transaction of the same backend.
  public func close() throws(SecretError) {
    try withSession { session in session.closeAndForgetKeys() }
  }
}
