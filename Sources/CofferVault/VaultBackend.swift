public import CofferCore
internal import CofferVaultFormat

/// Secrets in one encrypted file, shared safely by any number of threads and processes.
///
/// The vault is opened on first use, with the first credential that fits. Every method is synchronous and may
/// be called from any thread. A wait for another thread or process ends at ``VaultOptions/lockTimeout``. A
/// change is on the disk when its method returns. The file format is specified in `VaultFormat`.
///
/// In addition to the errors that each method documents, every method except
/// ``create(at:credential:label:history:options:)`` and ``describe(path:)`` may throw:
/// - `.vaultNotFound`, `.notAVault`, `.denied`, `.unsupportedVersion`, `.tampered` or `.io` if the file cannot
///   be used;
/// - `.rolledBack`, `.unexpectedVault`, `.unexpectedKey` or `.unverifiable` if the file is not what was seen
///   before, or if that cannot be determined;
/// - `.locked`, `.wrongKey`, `.costLimitExceeded`, and what a credential source throws, if the vault cannot
///   be unlocked;
/// - `.timedOut` at the deadline, and `.conflict` inside a transaction of the same backend.
public final class VaultBackend: TransactionalSecretBackend, ObservableSecretBackend {
  /// The path that the vault is opened by.
  public let path: String
  /// The largest value in bytes: 16 MiB.
  public static let maximumSecretSize = Layout.maximumValueLength

  private let lock = DeadlineLock()
  private nonisolated(unsafe) let session: VaultSession  // used only under the lock
  private let broadcast = ChangeBroadcast()
  private let watcher: VaultWatcher
  private let options: VaultOptions
  let environment: VaultEnvironment

  /// A vault at `path`, to be opened with the first credential of `credentials` that fits.
  public convenience init(
    path: String, credentials: [any VaultCredentialSource], options: VaultOptions = VaultOptions()
  ) {
    self.init(path: path, credentials: credentials, options: options, environment: VaultEnvironment())
  }

  package init(
    path: String, credentials: [any VaultCredentialSource], options: VaultOptions,
    environment: VaultEnvironment
  ) {
    self.path = path
    self.options = options
    self.environment = environment
    session = VaultSession(
      path: path, chain: CredentialChain(credentials, options: options, environment: environment))
    watcher = VaultWatcher(path: path, environment: environment)
  }

  /// Runs `body` with exclusive use of the session, then publishes the changes that it found or made.
  func withSession<R: ~Copyable>(
    _ body: (VaultSession) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    var changes: [SecretChange] = []
    defer { for change in changes { broadcast.send(change) } }
    return try lock.withLock(timeout: options.lockTimeout) { () throws(SecretError) in
      defer { changes = session.takeChanges() }
      return try body(session)
    }
  }

  /// Runs `body` on the current state of the vault.
  func read<R: ~Copyable>(
    _ body: (UnlockedVault) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withSession { session throws(SecretError) in try session.read(body) }
  }

  // MARK: SecretBackend

  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try read { vault throws(SecretError) in
      guard let item = try vault.find(identifier) else { return nil }
      do throws(SecretError) { return try vault.value(of: item) } catch { throw error.about(identifier) }
    }
  }

  public func store(
    _ secret: borrowing SecretBytes, for identifier: SecretIdentifier, metadata: SecretMetadata?
  ) throws(SecretError) {
    // Invalid input is refused before the vault is locked.
    try requireStorable(secret, for: identifier, metadata, maximum: Self.maximumSecretSize)
    try transaction { transaction throws(SecretError) in
      try transaction.store(secret, for: identifier, metadata: metadata)
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try transaction { transaction throws(SecretError) in try transaction.remove(identifier) }
  }

  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try read { vault throws(SecretError) in
      var items: [SecretItem] = []
      for item in try vault.allItems() where item.record.isInService(service) {
        items.append(try item.record.item())
      }
      return items.sorted { $0.identifier < $1.identifier }
    }
  }

  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try read { vault throws(SecretError) in
      try vault.find(identifier)?.record.item()
    }
  }

  public func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withSession { session throws(SecretError) in try session.transaction(body) }
  }

  // MARK: Changes

  /// Returns a new stream of the changes from now on. The file is watched while a stream exists.
  public func changes() -> AsyncStream<SecretChange> {
    let stream = broadcast.subscribe { [weak self] in self?.adjustWatch() }
    adjustWatch()
    return stream
  }

  private func adjustWatch() {
    watcher.adjust(isWanted: { !broadcast.isEmpty }) { [weak self] sawEvent in
      self?.lookForChanges(sawEvent: sawEvent)
    }
  }

  /// Looks at the file, so that `withSession` publishes what changed.
  private func lookForChanges(sawEvent: Bool) {
    var isOpen = false
    do throws(SecretError) {
      try withSession { session throws(SecretError) in
        // A look must not unlock the vault, which could show a prompt.
        isOpen = session.isOpen
        if isOpen { try session.read { _ in } }
      }
    } catch {
      // The next reader gets the error.
      isOpen = false
    }
    if !isOpen, sawEvent { broadcast.send(SecretChange(nil)) }
  }

  // MARK: The vault as a whole

  /// Opens the vault if it is not open yet, so that a failure shows early.
  public func unlock() throws(SecretError) {
    try read { _ in }
  }

  /// Opens the vault and calls `body` with its id and its master key, which is valid during the call.
  ///
  /// A program can keep the master key for a while and return it from a credential source as
  /// ``VaultCredential/masterKey(_:)``, so that a passphrase is not stretched on each use. Whoever has the
  /// master key can read and change the vault until ``rekey(credentials:)`` or
  /// ``removeKeySlots(ids:credentials:)`` changes it.
  public func withMasterKey<R>(
    _ body: (_ vaultID: String, _ master: borrowing SecretBytes) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try read { vault throws(SecretError) in try body(vault.file.header.vaultID.hex, vault.keys.master) }
  }

  /// Reads and authenticates every byte of the vault, including values, while no process writes.
  public func verify() throws(SecretError) -> VaultReport {
    try withSession { session throws(SecretError) in
      try session.readLocked { vault throws(SecretError) in try VaultReport(verifying: vault) }
    }
  }

  /// Rewrites the file without replaced and removed secrets. Changes do this automatically when it is
  /// worthwhile.
  public func compact() throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rewrite { _, _ in }
    }
  }

  /// Accepts the vault as it is now, whatever was seen of it before: after `.rolledBack`, `.unexpectedVault`,
  /// `.unexpectedKey` or `.unverifiable`, if a person knows that the vault is the right one.
  ///
  /// Changes the policy if one is given. Returns the checkpoint of the accepted state. Throws `.io` or
  /// `.denied` if the decision cannot be recorded. A decision does not change what another running process has
  /// seen: a program that refuses the vault calls this method itself, or is started again.
  @discardableResult
  public func trust(_ policy: TrustPolicy? = nil) throws(SecretError) -> String {
    try withSession { session throws(SecretError) in try session.trust(policy?.recorded) }
  }

  /// Reads the vault, and returns what a person should know of its file although it can be used.
  public func condition() throws(SecretError) -> VaultCondition {
    try withSession { session throws(SecretError) in
      try session.read { _ in }
      guard let condition = session.lastCondition else { throw .tampered("the vault was not read") }
      return condition
    }
  }

  /// The condition at the last use of the vault, or `nil` if it was not used yet. A commit slot that was
  /// damaged and then repaired by a change still counts.
  package func lastCondition() throws(SecretError) -> VaultCondition? {
    try withSession { session in
      var condition = session.lastCondition
      if session.foundDamagedSlot { condition?.isRecovered = true }
      return condition
    }
  }

  /// Returns what can be known of the vault at `path` without a key. Throws `.vaultNotFound`, `.notAVault`,
  /// `.denied`, `.unsupportedVersion`, `.tampered` or `.io`.
  public static func describe(path: String) throws(SecretError) -> VaultDescription {
    try VaultFile(path: path, environment: VaultEnvironment()).description
  }

  // MARK: Key slots

  /// Returns the ids of the key slots that the vault's own credentials or `credentials` open. Every source is
  /// asked.
  ///
  /// A change of the master key needs a credential for each slot that stays. Slots whose cost exceeds the
  /// limits are not tried.
  public func keySlots(openedBy credentials: [any VaultCredentialSource] = []) throws(SecretError) -> Set<
    String
  > {
    try withSession { session throws(SecretError) in try session.keySlots(openedBy: credentials) }
  }

  /// Adds a key slot for `credential`. Returns the new slot.
  ///
  /// `label` is at most 64 bytes of UTF-8 and is not encrypted. Throws `.alreadyExists` if the credential
  /// opens the vault already, `.tooLarge` if the vault has 16 slots or its passphrases would cost too much together,
  /// `.invalidKey` for a malformed credential, `.invalidMetadata` for a malformed label, and `.configuration` if the
  /// options set a cost below the minimum.
  @discardableResult
  public func addKeySlot(
    _ credential: borrowing VaultCredential, label: String = ""
  ) throws(SecretError) -> VaultKeySlot {
    try withSession { session throws(SecretError) in
      try session.addKeySlot(credential, label: label)
    }
  }

  /// Replaces the key slot `id` by one for `credential`. Returns the new slot.
  ///
  /// The master key stays the same, so an old copy of the file still opens with the old credential. The label
  /// stays the same if `label` is `nil`. Throws `.configuration` if there is no such slot, and like
  /// ``addKeySlot(_:label:)``.
  @discardableResult
  public func replaceKeySlot(
    id: String, with credential: borrowing VaultCredential, label: String? = nil
  ) throws(SecretError) -> VaultKeySlot {
    try withSession { session throws(SecretError) in
      try session.addKeySlot(credential, label: label, replacing: id)
    }
  }

  /// Removes the key slots `ids`, changes the master key and encrypts everything again.
  ///
  /// A program that had the credential of a slot may have kept the old master key. Each slot that stays needs
  /// its own credential for the new one, from the vault's own sources or from `credentials`. A slot that is
  /// removed needs none, so that slots whose credentials are lost can be removed together. Throws
  /// `.configuration` if there is no such slot, `.locked` if credentials are missing, `.costLimitExceeded` if
  /// the cost of a slot that stays exceeds the limits, and `.conflict` if no slot would stay. If it throws,
  /// nothing was changed, unless the error says that the change is in the vault and only the last barrier failed.
  public func removeKeySlots(
    ids: Set<String>, credentials: [any VaultCredentialSource] = []
  ) throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rekey(without: ids, credentials: credentials)
    }
  }

  /// Changes the master key and encrypts everything again. Every slot stays, and each needs its own
  /// credential like in ``removeKeySlots(ids:credentials:)``.
  public func rekey(credentials: [any VaultCredentialSource] = []) throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rekey(without: [], credentials: credentials)
    }
  }
}
