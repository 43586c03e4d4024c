internal import CofferVaultFormat
public import CofferCore
internal import Dispatch

/// Secrets in one encrypted file, shared safely by any number of threads and processes.
///
/// Nothing is read or asked for before the first use. Every method is thread-safe and synchronous; each
/// wait for another thread or process ends at ``VaultOptions/lockTimeout``. A change returns when it is on
/// the disk. The format is described in `VaultFormat`.
///
/// Every method but ``create(at:credential:label:options:)`` and ``describe(path:)`` may throw, beside
/// what it says itself: `.vaultNotFound`, `.notAVault`, `.denied`, `.unsupportedVersion`, `.tampered`,
/// `.rolledBack`, `.io`; `.locked`, `.wrongKey`, `.costLimitExceeded` and what a credential source throws;
/// `.timedOut`; `.conflict` inside a transaction of its own.
public final class VaultBackend: TransactionalSecretBackend, ObservableSecretBackend {
  /// The path the vault is opened by.
  public let path: String
  /// The largest value, in bytes: 16 MiB.
  public static let maximumSecretSize = Layout.maximumValueLength

  private let lock = DeadlineLock()
  private nonisolated(unsafe) let session: VaultSession  // only under the lock
  private let broadcast = ChangeBroadcast()
  private let watcher: VaultWatcher
  private let options: VaultOptions

  /// A vault at `path`, opened with the first credential of `credentials` that fits.
  public convenience init(
    path: String,
    credentials: [any VaultCredentialSource],
    options: VaultOptions = VaultOptions()
  ) {
    self.init(path: path, credentials: credentials, options: options, environment: VaultEnvironment())
  }

  package init(
    path: String,
    credentials: [any VaultCredentialSource],
    options: VaultOptions,
    environment: VaultEnvironment
  ) {
    self.path = path
    self.options = options
    session = VaultSession(path: path, sources: credentials, options: options, environment: environment)
    watcher = VaultWatcher(path: path, environment: environment)
  }

  /// Runs `body` with the session to itself, and tells of the changes it met or made.
  func withSession<R: ~Copyable>(
    _ body: (VaultSession) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    var changes: [SecretChange] = []
    defer { for change in changes { broadcast.send(change) } }
    return try lock.withLock(seconds: options.lockTimeout) { () throws(SecretError) in
      defer { changes = session.takeChanges() }
      return try body(session)
    }
  }

  // MARK: SecretBackend

  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try withSession { session throws(SecretError) in
      try session.read { vault throws(SecretError) in
        guard let item = try vault.find(vault.keys.lookupID(identifier)) else { return nil }
        do throws(SecretError) { return try vault.value(of: item) } catch { throw error.about(identifier) }
      }
    }
  }

  public func store(
    _ secret: borrowing SecretBytes,
    for identifier: SecretIdentifier,
    metadata: SecretMetadata?
  ) throws(SecretError) {
    // Wrong input is refused before anything is locked.
    try metadata?.validate()
    if secret.count > Self.maximumSecretSize {
      throw .tooLarge(secret.count, maximum: Self.maximumSecretSize, identifier)
    }
    try transaction { transaction throws(SecretError) in
      try transaction.store(secret, for: identifier, metadata: metadata)
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try transaction { transaction throws(SecretError) in try transaction.remove(identifier) }
  }

  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try withSession { session throws(SecretError) in
      try session.read { vault throws(SecretError) in
        var items: [SecretItem] = []
        for item in try vault.allItems() where item.record.isInService(service) {
          items.append(try item.record.item())
        }
        return items.sorted { $0.identifier < $1.identifier }
      }
    }
  }

  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try withSession { session throws(SecretError) in
      try session.read { vault throws(SecretError) in
        try vault.find(vault.keys.lookupID(identifier))?.record.item()
      }
    }
  }

  public func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withSession { session throws(SecretError) in try session.transaction(body) }
  }

  // MARK: Changes

  public func changes() -> AsyncStream<SecretChange> {
    let stream = broadcast.subscribe()
    watcher.start(while: { [weak broadcast] in broadcast?.isEmpty == false }) { [weak self] sawEvent in
      self?.lookForChanges(sawEvent: sawEvent)
    }
    return stream
  }

  /// Looks at the file, which makes `withSession` tell of what changed.
  private func lookForChanges(sawEvent: Bool) {
    do throws(SecretError) {
      let isOpen = try withSession { session throws(SecretError) in
        // A vault that nobody has opened yet is not opened by a look at it: that may ask for a passphrase.
        if session.isOpen { try session.read { _ in } }
        return session.isOpen
      }
      if !isOpen, sawEvent { broadcast.send(SecretChange(nil)) }
    } catch {
      // Whoever reads next meets the error itself; here there is nobody to throw it to.
      if sawEvent { broadcast.send(SecretChange(nil)) }
    }
  }

  // MARK: The vault as a whole

  /// Opens the vault now, if it is not open, so that what is wrong shows early.
  public func unlock() throws(SecretError) {
    try withSession { session throws(SecretError) in try session.read { _ in } }
  }

  /// Reads and authenticates every byte of the vault, values included, while nobody writes.
  public func verify() throws(SecretError) -> VaultReport {
    try withSession { session throws(SecretError) in
      try session.readLocked { vault throws(SecretError) in try VaultReport(verifying: vault) }
    }
  }

  /// Writes the file anew, without what was replaced and removed. It happens by itself when it pays.
  public func compact() throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rewrite { vault throws(SecretError) in (vault.vault.header.slots, vault.keys) }
    }
  }

  /// Takes the vault as it is for the newest there is, after `.rolledBack`: a backup was restored on
  /// purpose. Returns its checkpoint. What was stored since that backup is gone.
  @discardableResult
  public func acceptRollback() throws(SecretError) -> String {
    try withSession { session throws(SecretError) in try session.acceptRollback() }
  }

  /// What can be known of a vault without its key. Throws as every use of it would.
  public static func describe(path: String) throws(SecretError) -> VaultDescription {
    try VaultFile(path: path, environment: VaultEnvironment()).description
  }

  // MARK: Key slots

  /// Gives the vault one more credential. Throws `.tooLarge` where it has 16, `.invalidKey` for a credential
  /// that cannot be one. Returns the new slot.
  @discardableResult
  public func addKeySlot(
    _ credential: borrowing VaultCredential,
    label: String = ""
  ) throws(SecretError) -> VaultKeySlot {
    try withSession { session throws(SecretError) in
      try session.addKeySlot(credential, label: label)
    }
  }

  /// Puts another credential in a slot's place. The master key stays, so this takes no longer than writing
  /// the file. Whoever has an old copy of the file and the old credential can still open that copy.
  @discardableResult
  public func replaceKeySlot(
    id: String,
    with credential: borrowing VaultCredential,
    label: String? = nil
  ) throws(SecretError) -> VaultKeySlot {
    try withSession { session throws(SecretError) in
      try session.replaceKeySlot(id: id, with: credential, label: label)
    }
  }

  /// Takes a credential away. The vault gets a new master key and everything is encrypted again, since who
  /// held the credential may have kept the old one. Each slot that stays needs its own credential for that:
  /// from the vault's own sources, or from `others`. Throws `.locked` where one is missing, and
  /// `.conflict` for the last slot; nothing is changed then.
  public func removeKeySlot(
    id: String,
    others: [any VaultCredentialSource] = []
  ) throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rekey(without: id, others: others)
    }
  }

  /// Gives the vault a new master key and encrypts everything again. Every slot stays, and each needs its
  /// own credential, as in ``removeKeySlot(id:others:)``.
  public func rekey(others: [any VaultCredentialSource] = []) throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rekey(without: nil, others: others)
    }
  }
}
