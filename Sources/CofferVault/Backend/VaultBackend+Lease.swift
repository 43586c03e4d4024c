public import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

extension VaultBackend {
  /// Takes the lease of a secret. Returns `nil` if another thread or process has it.
  ///
  /// The lease is a lock on one byte of the empty file beside the vault whose name ends in `.leases`. The file is made
  /// if there is none. The number of the byte depends on a key of the vault, so that it does not reveal the secret's name.
  ///
  /// Throws `.denied` or `.io` if the file cannot be made, for example in a read-only directory, and an error of the vault.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    let (path, offset) = try read { vault throws(SecretError) in
      var id: [UInt8] = []
      vault.lookupID(identifier).append(to: &id)
      // 62 bits, because the end of the range must be a valid offset too.
      let offset = id.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) } >> 2
      return (vault.file.location.resolvedPath + ".leases", Int64(offset))
    }
    do throws(FileSystemError) {
      guard let lock = try ByteLock.tryLock(path, offset: offset) else { return nil }
      return SecretLease { withExtendedLifetime(lock) {} }
    } catch {
      throw .system(error, "The file \(path) for leases cannot be locked").about(identifier)
    }
  }
}
