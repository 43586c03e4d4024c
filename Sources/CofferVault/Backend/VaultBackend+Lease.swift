public import CofferCore
internal import CofferVaultFormat

extension VaultBackend {
  /// Takes the lease of a secret. Returns `nil` if another thread or process has it.
  ///
  /// The lease is a lock on one byte of an empty `.leases` file beside the vault. The file is made if it does not
  /// exist. The number of the byte depends on a key of the vault, so that it does not reveal the secret's name.
  ///
  /// In a vault on an engine, the lease stands in the vault, and this object prolongs it every 5 seconds. The lease of
  /// a process that has died ends after 15 seconds, so wait at least twice as long for one. A change of the secret
  /// through this object throws `.conflict` if it has lost the lease. At most 100 secrets of a vault have a lease at
  /// once.
  ///
  /// Throws `.denied` or `.io` if the file cannot be made, for example in a read-only directory, `.configuration` if
  /// the clocks of the engine and of this machine are more than 5 seconds apart, and an error of the vault.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    if let remoteLeases { return try remoteLeases.take(identifier, of: self) }
    let (file, number) = try read { vault throws(SecretError) in
      let id = encode(vault.lookupID(identifier))
      // 62 bits, because the end of the range of a lock must be a valid offset too.
      return (vault.file.storage, Int64(id.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) } >> 2))
    }
    do throws(SecretError) {
      guard let lock = try file.tryLease(number) else { return nil }
      return SecretLease { withExtendedLifetime(lock) {} }
    } catch { throw error.about(identifier) }
  }
}
