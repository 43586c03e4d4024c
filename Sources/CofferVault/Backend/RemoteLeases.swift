internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Synchronization

/// The leases that this process has in a vault on an engine. Thread-safe.
///
/// A holder prolongs its lease as long as it lives. What it stores is published on condition that the page of leases
/// still has its taking, so that a holder that was away for too long changes nothing.
final class RemoteLeases: Sendable {
  /// The time from taking or prolonging a lease to its end, in milliseconds. If the holder dies, others wait this long.
  private static let span = 15_000
  /// How often a holder prolongs it: 5 seconds.
  private static let period = Duration.seconds(5)

  private struct State {
    /// The taking of each lease. Zero: the lease is lost.
    var held: [SecretIdentifier: Bytes16] = [:]
    /// The file and the counter of the last page of leases.
    var seen: (file: Bytes16, counter: Int)?
  }

  private let state = Mutex(State())
  private let medium: RemoteMedium

  init(_ medium: RemoteMedium) { self.medium = medium }

  /// Takes the lease of a secret, or returns `nil` if another process has it or if there are too many leases. Throws
  /// `.configuration` if the clocks are too far apart, and an error of the vault.
  func take(_ secret: SecretIdentifier, of vault: VaultBackend) throws(SecretError) -> SecretLease? {
    // A thread of this process has not given its lease back yet. The lease may have ended.
    if state.withLock({ $0.held[secret] != nil }) { return nil }
    let taking = vault.environment.randomness.bytes16()
    let isTaken = try change(secret, in: vault) { leases, id throws(SecretError) in
      let now = try medium.time(within: Self.span / 3)
      func isFree(_ lease: LeasePage.Lease) -> Bool {
        // No holder writes a later end than its own time plus the span. Then the engine's clock was wrong.
        lease.taking == taking || lease.end <= now || lease.end > now + 4 * Self.span
      }
      if let lease = leases[id], !isFree(lease) { return false }
      leases[id] = nil
      if leases.count == Layout.maximumLeases { leases = leases.filter { !isFree($0.value) } }
      leases[id] = LeasePage.Lease(taking: taking, end: now + Self.span)
      return leases.count <= Layout.maximumLeases
    }
    guard isTaken else { return nil }
    state.withLock { $0.held[secret] = taking }
    let renewal: (any AnyObject & Sendable)?
    do throws(FileSystemError) {
      renewal = try WatchThread.shared.every(Self.period) { [weak vault] in
        guard let vault else { return }
        CallThreads.shared.submit(for: vault) { self.prolong(secret, taking, in: vault, by: Self.span) }
      }
    } catch {
      // Without a thread, the lease ends by itself.
      renewal = nil
    }
    return SecretLease {
      withExtendedLifetime(renewal) {}
      self.state.withLock { _ = $0.held.removeValue(forKey: secret) }
      self.prolong(secret, taking, in: vault, by: nil)
    }
  }

  /// Prolongs a lease that this process still has, or ends it without a `span`. If that fails, it ends by itself.
  private func prolong(_ secret: SecretIdentifier, _ taking: Bytes16, in vault: VaultBackend, by span: Int?) {
    do throws(SecretError) {
      _ = try change(secret, in: vault) { leases, id throws(SecretError) in
        guard leases[id]?.taking == taking, span == nil || state.withLock({ $0.held[secret] }) == taking
        else { return false }
        leases[id] = try span.map { span throws(SecretError) in
          LeasePage.Lease(taking: taking, end: try medium.time(within: Self.span / 3) + span)
        }
        return true
      }
    } catch {}
  }

  /// Publishes what `body` makes of the leases, unless it returns `false`. It gets the lookup id of the secret, and
  /// runs again after a refusal, also of a request that came twice.
  private func change(
    _ secret: SecretIdentifier, in vault: VaultBackend,
    _ body: (inout [Bytes16: LeasePage.Lease], Bytes16) throws(SecretError) -> Bool
  ) throws(SecretError) -> Bool {
    // The time that is known may be from before the machine slept.
    medium.expire()
    return try vault.withSession { session throws(SecretError) in
      try session.write(vault.unlocking) { snapshot throws(SecretError) in
        var page = try leases(in: snapshot)
        guard try body(&page.leases, snapshot.lookupID(secret)) else { return (false, .done) }
        page.counter += 1
        let (publication, after) = try snapshot.publish(page)
        if case .done = publication { session.shared.advance(from: snapshot, to: after, []) }
        return (true, publication)
      }
    }
  }

  /// The page in `vault`. If the engine has gone back to an earlier one, the leases of this process are lost.
  private func leases(in vault: VaultSnapshot) throws(SecretError) -> LeasePage {
    let (page, file) = (try vault.leases(), vault.file.header.fileID)
    state.withLock { state in
      if let seen = state.seen, seen.file == file, page.counter < seen.counter {
        state.held = state.held.mapValues { _ in .zero }
      }
      state.seen = (file, page.counter)
    }
    return page
  }

  /// Throws `.conflict` if `transaction` changes a secret whose lease this process had and has lost.
  func requireHeld(by transaction: VaultTransaction) throws(SecretError) {
    if state.withLock({ $0.held.isEmpty }) { return }
    let page = try leases(in: transaction.vault)
    for (secret, taking) in state.withLock({ $0.held }) where transaction.changes(secret) {
      guard page.leases[transaction.vault.lookupID(secret)]?.taking == taking else {
        throw SecretError(
          .conflict, "The lease of the secret ended before this change, and another process may have it.",
          advice: "Take the lease again, and read the secret.", identifier: secret)
      }
    }
  }
}
