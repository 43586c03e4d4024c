internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Synchronization

/// The leases that this process has in a vault on an engine. Thread-safe.
///
/// A lease is a record in the vault: who has it, and until when by the engine's clock. The holder prolongs it as long
/// as it lives. What the holder stores in the meantime is checked in the same transaction, so that a holder that was
/// away for too long changes nothing.
final class RemoteLeases: Sendable {
  /// The time from taking or prolonging a lease to its end, in milliseconds. If the holder dies, others wait this long.
  private static let span = 15_000
  /// How often a holder prolongs it: 5 seconds.
  private static let period = Duration.seconds(5)

  /// A record: a random id of the holder, and the end in milliseconds since 1970.
  private struct Lease {
    let holder: Bytes16
    let end: Int

    init(_ holder: Bytes16, end: Int) { (self.holder, self.end) = (holder, end) }

    /// The lease in `record`, or `nil` if there is none.
    init?(_ record: SecretIdentifier, in access: any SecretAccess) throws(SecretError) {
      guard let value = try access.lookUp(record) else { return nil }
      var reader = ByteReader(value.withBytes { bytes in bytes.indices.map { bytes[$0] } }, part: "a lease")
      (holder, end) = (try reader.bytes16(), try reader.number())
    }

    var value: SecretBytes { SecretBytes(encode(holder, end)) }
  }

  /// The name of the record and the holder, for each secret.
  private let held = Mutex<[SecretIdentifier: (record: SecretIdentifier, holder: Bytes16)]>([:])
  private let medium: RemoteMedium

  init(_ medium: RemoteMedium) { self.medium = medium }

  /// Takes the lease of a secret, or returns `nil` if another process has it. Throws an error of the vault.
  func take(_ secret: SecretIdentifier, of vault: VaultBackend) throws(SecretError) -> SecretLease? {
    // A thread of this process has not given its lease back yet. The lease may have ended.
    if held.withLock({ $0[secret] != nil }) { return nil }
    let record = try vault.read { vault in SecretIdentifier(leaseOf: vault.lookupID(secret).hex) }
    let holder = vault.environment.randomness.bytes16()
    func isFree(_ access: any SecretAccess) throws(SecretError) -> Bool {
      guard let lease = try Lease(record, in: access) else { return true }
      // No holder writes a later end than its own time plus the span. Then the engine's clock was wrong.
      return lease.end <= medium.now || lease.end > medium.now + 4 * Self.span
    }
    guard try isFree(vault) else { return nil }
    let isTaken = try vault.withTransaction { transaction throws(SecretError) in
      guard try isFree(transaction) else { return false }
      try transaction.store(
        Lease(holder, end: medium.now + Self.span).value, for: record, metadata: .newValue, history: .none)
      return true
    }
    guard isTaken else { return nil }
    held.withLock { $0[secret] = (record, holder) }
    let renewal: (any AnyObject & Sendable)?
    do throws(FileSystemError) {
      renewal = try WatchThread.shared.every(Self.period) { [weak vault] in
        guard let vault else { return }
        CallThreads.shared.submit { self.change(record, holder, in: vault, toEnd: false) }
      }
    } catch {
      // Without a thread, the lease ends by itself.
      renewal = nil
    }
    return SecretLease {
      withExtendedLifetime(renewal) {}
      self.held.withLock { _ = $0.removeValue(forKey: secret) }
      self.change(record, holder, in: vault, toEnd: true)
    }
  }

  /// Prolongs or ends a lease that `holder` still has. If that fails, the lease ends by itself.
  private func change(_ record: SecretIdentifier, _ holder: Bytes16, in vault: VaultBackend, toEnd: Bool) {
    do throws(SecretError) {
      try vault.withTransaction { transaction throws(SecretError) in
        guard try Lease(record, in: transaction)?.holder == holder else { return }
        if toEnd {
          try transaction.remove(record, history: .none)
        } else {
          let lease = Lease(holder, end: medium.now + Self.span)
          try transaction.store(lease.value, for: record, metadata: .newValue, history: .none)
        }
      }
    } catch {}
  }

  /// Throws `.conflict` if `transaction` changes a secret whose lease this process had and has lost.
  func requireHeld(by transaction: VaultTransaction) throws(SecretError) {
    for (secret, lease) in held.withLock({ $0 }) where transaction.changes(secret) {
      guard try Lease(lease.record, in: transaction)?.holder == lease.holder else {
        throw SecretError(
          .conflict, "The lease of the secret ended before this change, and another process may have it.",
          advice: "Nothing was changed. Take the lease again, and read the secret.", identifier: secret)
      }
    }
  }
}
