public import CofferCore
internal import CofferVaultFormat
internal import Synchronization

/// Secrets in one encrypted file, shared safely by any number of threads and processes.
///
/// The vault is opened on first use, with the first credential that fits. Every method is synchronous and may be called
/// from any thread. Reads wait for other threads and processes only while the vault is being unlocked and at the end of
/// a rewrite, and at most once a second for the disk, to record what others wrote. Every wait for another thread or
/// process ends at ``VaultOptions/lockTimeout``. A change is on the disk when its method returns. The file format is
/// specified in `VaultFormat`.
///
/// In addition to the errors that each method documents, every method except ``close()`` and
/// ``create(at:credential:label:recipients:history:options:)`` may throw an *error of the vault*:
/// - `.vaultNotFound`, `.notAVault`, `.denied`, `.unsupportedVersion`, `.tampered` or `.io` if the file cannot be used;
/// - `.rolledBack`, `.unexpectedVault`, `.unexpectedKey` or `.unverifiable` if the file is not the vault that was seen
///   before, or not a later state of it, or if that cannot be determined;
/// - `.locked`, `.wrongKey`, `.costLimitExceeded`, and what a credential source throws, if the vault cannot be
///   unlocked;
/// - `.timedOut` at the deadline, and `.conflict` inside a transaction of the same backend.
public final class VaultBackend: SecretBackend {
  /// The path or URL that the vault is opened by.
  public var path: String { medium.path }
  /// The largest value in bytes: 16 MiB.
  package static let maximumSecretSize = Layout.maximumValueLength

  private let lock: DeadlineLock
  private nonisolated(unsafe) let session: VaultSession  // used only under the lock
  private let shared: SharedSnapshot
  private let broadcast: ChangeBroadcast
  private let watcher: MediumWatcher
  /// The leases of this process, if the vault is on an engine.
  let remoteLeases: RemoteLeases?
  private let medium: any VaultMedium
  private let lastSearchFailed = Atomic(false)
  private let options: VaultOptions
  let environment: VaultEnvironment
  /// The backend that this one shares everything with; only `original` may show prompts. `nil`: this one may show them.
  private let original: VaultBackend?

  /// A vault at `path`, which may be a URL of an engine, to be opened with the first credential of `credentials` that
  /// fits.
  public convenience init(path: String, credentials: [VaultCredentialSource], options: VaultOptions = VaultOptions()) {
    self.init(path: path, credentials: credentials, options: options, environment: VaultEnvironment())
  }

  /// A vault at `path` that is opened with `key`: the 32 bytes of a key, such as ``VaultKey/parse(_:)`` returns.
  ///
  /// Nothing is opened yet. If `key` does not have 32 bytes, each use throws `.invalidKey`.
  public convenience init(path: String, key: SecretBytes, options: VaultOptions = VaultOptions()) {
    self.init(path: path, credentials: [VaultCredentialSource("the given key", .key(key))], options: options)
  }

  package convenience init(
    path: String, credentials: [VaultCredentialSource], options: VaultOptions, environment: VaultEnvironment
  ) {
    let (medium, environment) = environment.place(path, options)
    self.init(medium, credentials: credentials, options: options, environment: environment)
  }

  package init(
    _ medium: any VaultMedium, credentials: [VaultCredentialSource], options: VaultOptions,
    environment: VaultEnvironment
  ) {
    (self.medium, self.options, self.environment, original) = (medium, options, environment, nil)
    (lock, shared, broadcast) = (DeadlineLock(), SharedSnapshot(), ChangeBroadcast())
    session = VaultSession(
      medium, chain: CredentialChain(credentials, options: options, environment: environment),
      shared: shared)
    (watcher, remoteLeases) = (MediumWatcher(medium, period: environment.watchPeriod), session.leases)
  }

  private init(withoutPromptsOf backend: VaultBackend) {
    (medium, options, environment, original) = (backend.medium, backend.options, backend.environment, backend)
    (lock, session, shared) = (backend.lock, backend.session, backend.shared)
    (broadcast, watcher, remoteLeases) = (backend.broadcast, backend.watcher, backend.remoteLeases)
  }

  /// A backend for the same vault. A call that would need a credential from a source that may show a prompt throws
  /// `.locked`.
  public var withoutPrompts: any SecretBackend {
    original == nil ? VaultBackend(withoutPromptsOf: self) : self
  }

  /// How a call on this object may unlock the vault.
  var unlocking: Unlocking { original == nil ? .withPrompts : .withoutPrompts }

  /// Runs `body` with exclusive use of the session, then publishes the changes that were found or made.
  func withSession<R: ~Copyable>(_ body: (VaultSession) throws(SecretError) -> R) throws(SecretError) -> R {
    defer { publishChanges() }
    return try lock.withLock(timeout: options.lockTimeout) { () throws(SecretError) in try body(session) }
  }

  private func publishChanges() {
    for change in shared.takeChanges() { broadcast.send(change) }
  }

  /// Runs `body` on the current state of the vault. A failed run may be repeated, so `body` must have no effects.
  ///
  /// The session is used only to open the vault, to wait for a lock, and to find out why a read failed.
  func read<R: ~Copyable>(_ body: (VaultSnapshot) throws(SecretError) -> R) throws(SecretError) -> R {
    try lock.requireNotHeld()
    if let result = try shared.read(body) {
      if shared.hasNews {
        defer { publishChanges() }
        _ = try lock.withLockIfFree { session.settle() }
      }
      return result
    }
    return try withSession { session throws(SecretError) in try session.read(unlocking, body) }
  }

  // MARK: SecretBackend

  public var features: SecretFeatures { [.transactions, .changes, .leases, .history] }

  public func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try read { vault throws(SecretError) in
      guard let entry = try vault.find(identifier) else { return nil }
      return try vault.secret(entry, isInConflict: vault.isInConflict(entry), by: vault.sealedValue)
    }
  }

  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try read { vault throws(SecretError) in
      guard let item = try vault.find(identifier) else { return nil }
      return try vault.value(of: item, for: identifier)
    }
  }

  public func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    let vault = try read { $0 }
    // The base has its values in this order; the tail does not.
    var reader = BufferedFileReader(vault.file.storage, end: vault.state.baseEnd)
    try vault.forEachItem(inService: service) { item, isInConflict throws(SecretError) in
      let secret = try vault.secret(item, isInConflict: isInConflict) { entry throws(SecretError) in
        try entry.valueOffset < vault.state.baseEnd
          ? reader.array(at: entry.valueOffset, count: entry.record.valueLength)
          : vault.sealedValue(of: entry)
      }
      try body(secret)
    }
  }

  public func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    // Invalid input is refused before the vault is locked.
    try requireStorable(value, for: identifier, maximum: Self.maximumSecretSize)
    try metadata.given(over: nil)?.validate()
    try withTransaction { transaction throws(SecretError) in
      try transaction.store(value, for: identifier, metadata: metadata, history: history)
    }
  }

  @discardableResult
  public func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try withTransaction { transaction throws(SecretError) in
      try transaction.remove(identifier, history: history)
    }
  }

  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try read { vault throws(SecretError) in try vault.items(inService: service) }
  }

  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try read { vault throws(SecretError) in
      guard let entry = try vault.find(identifier) else { return nil }
      return try entry.record.item(isInConflict: vault.isInConflict(entry))
    }
  }

  public func transaction<R, E: Error>(
    _ body: (any SecretTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    try withSession { session throws(SecretError) in try session.transaction(unlocking, body) }
  }

  // MARK: Changes

  /// Returns a new stream of the changes from now on. The file is watched while a stream exists.
  public func changes() -> AsyncStream<SecretChange> {
    let owner = original ?? self
    let stream = broadcast.subscribe { [weak owner] in owner?.adjustWatch() }
    adjustWatch()
    return stream
  }

  private func adjustWatch() {
    let owner = original ?? self
    watcher.adjust(isWanted: { !broadcast.isEmpty }) { [weak owner] sawEvent in
      owner?.findChanges(sawEvent: sawEvent)
    }
  }

  /// Reads the file, so that `withSession` publishes what changed.
  ///
  /// The search must not unlock the vault: that could show a prompt or start a program. If it therefore cannot read the
  /// vault, a possible change is reported: for each event, and once when searches begin to fail and to succeed again.
  private func findChanges(sawEvent: Bool) {
    var (wasOpened, hasFailed) = (false, false)
    do throws(SecretError) {
      try withSession { session throws(SecretError) in
        wasOpened = session.wasOpened
        if wasOpened { try session.read(.never) { _ in } }
      }
    } catch {
      // The next reader gets the error.
      hasFailed = true
    }
    let failedBefore = lastSearchFailed.exchange(hasFailed, ordering: .relaxed)
    if hasFailed != failedBefore || sawEvent && (hasFailed || !wasOpened) {
      broadcast.send(SecretChange(nil))
    }
  }

  // MARK: The vault as a whole

  /// Opens the vault if it is not open yet, so that a failure shows early. Throws an error of the vault.
  public func unlock() throws(SecretError) {
    try withSession { session throws(SecretError) in try session.read(unlocking) { _ in } }
  }

  /// Opens the vault and calls `body` with its id and its master key, which is valid during the call.
  ///
  /// A program can keep the master key for a while and return it from a credential source as
  /// ``VaultCredential/masterKey(_:)``, so that a passphrase is not stretched on each use. Whoever has the master key
  /// can read and change the vault until ``rekey(opened:)`` or ``removeKeySlots(ids:opened:)`` changes it.
  ///
  /// Throws what `body` throws, and an error of the vault. `body` may run twice if another process changes the file.
  package func withMasterKey<R>(
    _ body: (_ vaultID: String, _ master: SecretBytes) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withSession { session throws(SecretError) in
      try session.read(unlocking) { vault throws(SecretError) in
        try body(vault.file.header.vaultID.hex, vault.keys.master)
      }
    }
  }

  /// Returns the pin of the vault's state: see ``VaultOptions/pins``. Throws an error of the vault.
  public func pin() throws(SecretError) -> String { try read { vault in VaultPin(vault).description } }

  /// Returns the number of the last change. A version that is stored later has a higher one. Throws an error of the
  /// vault.
  package func lastChange() throws(SecretError) -> Int { try read { vault in vault.state.sequence } }

  /// Reads and authenticates every byte of the vault, including values, while no process writes. Throws `.tampered` if
  /// a byte is not authentic, or another error of the vault.
  package func verify() throws(SecretError) -> VaultReport {
    try withSession { session throws(SecretError) in try session.verify(unlocking) }
  }

  /// Rewrites the file without the versions that are beyond the history limit. Changes do this automatically when
  /// enough space is unused. Throws an error of the vault.
  package func compact() throws(SecretError) {
    try withSession { session throws(SecretError) in
      try session.rewrite(unlocking) { _, _ in }
    }
  }

  /// Accepts the vault as it is now. Call it after `.rolledBack`, `.unexpectedVault`, `.unexpectedKey`, `.unverifiable`
  /// or `.untrusted`, if a person knows that the vault is the right one.
  ///
  /// If `onlyHere` is `false`, the vault is accepted at every path, with its present master key and no other that was
  /// seen of it. If `true`, it is accepted only at this path, for example as a backup: what was seen of it at other
  /// paths is still valid there, and a removed key may read what is stored here. `nil` keeps what the records of the
  /// path say; if there are none, it means every path.
  ///
  /// Changes the policy if one is given. Pass the `pin` that ``unconfirmed(pin:)`` returned and a person compared: then
  /// throws if the file was exchanged since. Returns the pin of the accepted state. Another process that is running and
  /// refuses the vault must call this method itself, or be started again. Throws `.io` or `.denied` if the decision
  /// cannot be recorded, `.unexpectedKey` if another master key of the vault was seen at any path and `knowsOtherKey`
  /// is `false`, and an error of the vault.
  @discardableResult
  package func trust(
    _ policy: TrustPolicy? = nil, pin: String? = nil, onlyHere: Bool? = nil, knowsOtherKey: Bool = true
  ) throws(SecretError) -> String {
    try withUnconfirmed(pin: pin) { known, vault throws(SecretError) in
      try known.trustAndPublish(vault, policy?.recorded, isDetached: onlyHere, knowsOtherKey: knowsOtherKey)
      return VaultPin(vault).description
    }
  }

  /// Returns what a person should know before ``trust(_:pin:onlyHere:)``, and changes nothing. A person compares the
  /// pin with one that came by another way, because a forged vault has a pin too. Throws if the vault is not in the
  /// state of `pin`, and an error of the vault.
  package func unconfirmed(pin: String? = nil) throws(SecretError) -> UnconfirmedVault {
    try withUnconfirmed(pin: pin) { known, vault throws(SecretError) in try known.unconfirmed(vault) }
  }

  /// Runs `body` on the vault as it is now if `pin` accepts it. Earlier decisions do not matter.
  func withUnconfirmed<R>(
    pin: String? = nil, _ body: (inout KnownVaults, VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withSession { session throws(SecretError) in try session.readUnconfirmed(unlocking, pin: pin, body) }
  }

  /// What a person should know of the engine that the vault is on, and the path of the sealed copy on this machine.
  /// `nil` for a file. Throws `.unavailable` and `.denied`.
  package func engine() throws(SecretError) -> (text: String, latency: Duration, clock: Duration, copy: String?)? {
    guard let medium = medium as? RemoteMedium else { return nil }
    let (text, latency, clock) = try medium.describe()
    return (text, latency, clock, medium.copy?.path)
  }

  /// The id of the vault that was seen last at this path, whatever is there now. `nil` if there is no record of it.
  package var recordedID: String? {
    guard let directory = options.knownVaultsDirectory else { return nil }
    let path = medium is RemoteMedium ? path : LocalMedium.absolute(path)
    do throws(SecretError) {
      guard let opened = try KnownVaultDirectory.open(directory, about: path, environment) else { return nil }
      let record = KnownVaultFile(about: .path(path), of: path, in: opened, environment: environment)
      return try record.load()?.newest.record.vault.hex
    } catch { return nil }
  }

  /// Whether the file of this vault is the one of `other`.
  package func isSamePlace(as other: VaultBackend) -> Bool { medium.isSamePlace(as: other.medium) }

  /// `true` if a record says that this vault was seen at this path, `false` if it was seen only at other paths, `nil`
  /// if there is no record of it. A record that cannot be read does not count. Throws what ``description()`` throws.
  package func isKnown() throws(SecretError) -> Bool? {
    try withSession { session throws(SecretError) in try session.isKnown() }
  }

  /// Returns another path at which this user saw the same vault, if a vault with the same id is still there. The path
  /// is that of the last use of this vault.
  package func otherCopy() throws(SecretError) -> String? {
    // An engine is not asked: it can be away.
    guard let other = try withSession({ session in session.knownVaults.otherPath }), !RemoteURL.isURL(other)
    else { return nil }
    do throws(SecretError) {
      let vault = VaultBackend(path: other, credentials: [], options: options, environment: environment)
      return try vault.description().id == description().id && !isSamePlace(as: vault) ? other : nil
    } catch { return nil }
  }

  /// Reads the vault, and returns what a person should know about it. Throws an error of the vault.
  package func notices() throws(SecretError) -> Set<VaultNotice> {
    try withSession { session throws(SecretError) in
      try session.read(unlocking) { _ in }
      return session.notices ?? []
    }
  }

  /// Returns the notices of the last use of the vault, or `nil` if it was not used yet. A commit slot that was damaged
  /// and then repaired by a change still counts. Throws an error of the vault.
  package func lastNotices() throws(SecretError) -> Set<VaultNotice>? {
    try withSession { session in
      session.notices.map { notices in
        notices.union(session.foundDamagedSlot ? [.recovered] : [])
          .union(session.knownVaults.isUnrecorded ? [.unrecorded] : [])
      }
    }
  }

  /// Closes the vault's file and wipes its keys from memory.
  ///
  /// Waits for a call of another thread, and for the disk if another program has changed the vault. The next call opens
  /// the vault again, with its credentials. The object still refuses a state that is older than the newest one that it
  /// has seen. Leases and streams of changes stay: the file is watched while a stream exists.
  ///
  /// Throws `.timedOut` if a call of another thread takes too long, and `.conflict` inside a transaction of the same
  /// backend.
  public func close() throws(SecretError) { try withSession { session in session.closeAndForgetKeys() } }

  /// Returns what can be read of the vault without a key. Throws `.vaultNotFound`, `.notAVault`, `.denied`,
  /// `.unsupportedVersion`, `.tampered` or `.io`.
  package func description() throws(SecretError) -> VaultDescription {
    // This call does not wait for that of another thread, which may be waiting for a person.
    if let file = try lock.withLockIfFree({ () throws(SecretError) in try session.openFile() }) {
      return file.description
    }
    return try VaultFile(medium.open()).description
  }

  /// The same vault, to be opened with the first credential of `credentials` that fits.
  package func with(credentials: [VaultCredentialSource]) -> VaultBackend {
    VaultBackend(medium, credentials: credentials, options: options, environment: environment)
  }
}
