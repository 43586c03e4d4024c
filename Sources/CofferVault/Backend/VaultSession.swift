internal import CofferCore
internal import CofferVaultFormat

/// A vault in use by this process: opened on first use, read again before each use, and opened anew if another file has
/// taken its place.
///
/// The state that it has read and accepted is in a ``SharedSnapshot``. Other threads read from there without the
/// session. Not thread-safe: the owner holds a lock.
final class VaultSession {
  let medium: any VaultMedium
  var path: String { medium.path }
  let chain: CredentialChain
  let environment: VaultEnvironment
  let shared: SharedSnapshot

  /// The keys that opened the vault last. They open a file that another process rewrote without unlocking it.
  private var keys: (vault: Bytes16, keys: DerivedKeys)?
  private(set) var knownVaults: KnownVaults
  /// The file that was opened last. Its header is read again at each use, because another one may be copied into it.
  private var storage: (any MediumFile)?
  /// After a failed rewrite of the file with that id: the tail's replay length from which the next rewrite is tried.
  private var nextRewrite: (fileID: Bytes16, replayLength: Int)?
  private(set) var notices: Set<VaultNotice>?
  /// Whether a commit slot was found damaged. The next change repairs it.
  private(set) var foundDamagedSlot = false
  /// The leases of this process, if the vault is on an engine.
  let leases: RemoteLeases?
  /// The state that the last change makes, if it counts. `nil`: it makes none.
  private var sent: Checkpoint?

  init(_ medium: any VaultMedium, chain: CredentialChain, shared: SharedSnapshot) {
    (self.medium, self.chain, self.shared) = (medium, chain, shared)
    environment = chain.environment
    leases = (medium as? RemoteMedium).map { RemoteLeases($0) }
    knownVaults = KnownVaults(options: chain.options, environment: chain.environment, shared: shared)
  }

  var lockTimeout: Duration { chain.options.lockTimeout }

  /// Whether the program has opened the vault and has not closed it since.
  var wasOpened: Bool { keys != nil }

  /// The errors that a reader without a lock may get although the vault is not damaged.
  private static let suspicious: Set<SecretError.Code> = [
    .tampered, .rolledBack, .unexpectedKey, .unexpectedVault, .unverifiable,
  ]

  // MARK: Reading

  /// Runs `body` on the vault as it is now, without a lock.
  ///
  /// If a check fails, another process may have been writing to the file: the file is opened again under a shared lock,
  /// and only a second failure is reported.
  func read<R: ~Copyable>(
    _ unlocking: Unlocking, _ body: (VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    do throws(SecretError) {
      let vault = try current(unlocking)
      // One slot may be invalid because a commit is writing it. Reading again under a lock shows whether it is.
      guard vault.slots.isRecovered, !vault.wasOpenedLocked else {
        observe(vault)
        return try body(vault)
      }
    } catch {
      guard Self.suspicious.contains(error.code) else { throw error }
    }
    return try readLocked(unlocking, body)
  }

  /// Reads the vault again and runs `body` on it while no process writes.
  func readLocked<R: ~Copyable>(
    _ unlocking: Unlocking, _ body: (VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    shared.close()
    return try withLock(exclusive: false, of: openFile) { file throws(SecretError) in
      let opened: VaultSnapshot
      do throws(SecretError) { opened = try open(file, unlocking, isLocked: true) } catch {
        // No lock keeps others from changing a remote vault, and from recording that, after it was read or copied.
        guard let medium = medium as? RemoteMedium, Self.suspicious.contains(error.code) else { throw error }
        medium.expire()
        guard try medium.open().identity != file.storage.identity else { throw error }
        return nil
      }
      observe(opened)
      return try body(opened)
    }
  }

  /// Opens the vault or catches up with its changes. `checked` is the file that is known to be at the vault's place.
  private func current(_ unlocking: Unlocking, checked: VaultFile? = nil) throws(SecretError) -> VaultSnapshot {
    do throws(SecretError) {
      if let snapshot = try shared.refreshed(checked: checked) {
        knownVaults.recordRead(snapshot, isUrgent: false)
        return snapshot
      }
      shared.close()
      return try open(openFile(), unlocking)
    } catch {
      // The descriptor may fail again, so the next use opens the file anew.
      close()
      throw error
    }
  }

  /// Returns the file that is at the vault's place now.
  func openFile() throws(SecretError) -> VaultFile {
    if let current = try storage?.current() { return try VaultFile(current) }
    let opened = try medium.open()
    storage = opened
    return try VaultFile(opened)
  }

  /// Whether there are records of the vault at its place: see ``VaultBackend/isKnown()``.
  func isKnown() throws(SecretError) -> Bool? { knownVaults.isKnown(try openFile()) }

  /// Closes the file. The next use opens it again.
  func close() {
    shared.close()
    storage = nil
  }

  private func open(
    _ file: VaultFile, _ unlocking: Unlocking, isLocked: Bool = false
  ) throws(SecretError) -> VaultSnapshot {
    try knownVaults.identify(file)
    let opened = try VaultSnapshot(file, keys: keys(of: file, unlocking), isLocked: isLocked)
    keys = (file.header.vaultID, opened.keys)
    do throws(SecretError) { try knownVaults.admitAndPublish(opened) } catch {
      guard chain.options.isOffline, file.storage.isRemote, [.rolledBack, .unexpectedKey].contains(error.code) else {
        throw error
      }
      throw SecretError(
        error.code, "This machine's copy of the vault at \(medium.path) is older than what it has seen of the vault.",
        advice: "Read the vault once with its engine.")
    }
    return opened
  }

  /// The keys of a file: those that opened the vault last, or else those that its credentials open.
  private func keys(of file: VaultFile, _ unlocking: Unlocking) throws(SecretError) -> DerivedKeys {
    guard let keys, keys.vault == file.header.vaultID, keys.keys.isCommitted(to: file.header) else {
      return try chain.unlock(file, unlocking)
    }
    try keys.keys.authenticate(file.header)
    return keys.keys
  }

  /// Records the state that readers have accepted.
  func settle() {
    if let snapshot = shared.current { knownVaults.recordRead(snapshot, isUrgent: false) }
  }

  /// Releases the file and the keys. The accepted state of the vault is remembered.
  func closeAndForgetKeys() {
    if shared.current != nil {
      // The readers may have accepted a later state than the recorded one.
      do throws(SecretError) {
        knownVaults.recordRead(try current(.never), isUrgent: true)
      } catch {
        // The state that was accepted before is recorded, except perhaps for changes of the last second.
      }
    }
    close()
    keys = nil
  }

  /// Runs `body` on the vault as it is now if `pin` accepts it, while no process writes. Earlier decisions do not
  /// matter.
  func readUnconfirmed<R>(
    _ unlocking: Unlocking, pin: String?,
    _ body: (inout KnownVaults, VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    let pins = try VaultPins(pin.map { [$0] } ?? [])
    return try withLock(exclusive: false, of: openFile) { file throws(SecretError) in
      let opened = try VaultSnapshot(file, keys: keys(of: file, unlocking))
      keys = (file.header.vaultID, opened.keys)
      try knownVaults.requirePlace(of: file, in: pins)
      try pins.requireIdentity(file)
      _ = try pins.areShown(by: opened)
      return try body(&knownVaults, opened)
    }
  }

  /// Reads and authenticates the whole vault while no other process writes.
  func verify(_ unlocking: Unlocking) throws(SecretError) -> VaultReport {
    try readLocked(unlocking) { opened throws(SecretError) in
      let showsPins = try knownVaults.requirePins(of: opened.file).areShown(by: opened)
      return try VaultReport(
        verifying: opened, compared: knownVaults.compared, showsPins: showsPins, now: environment.now())
    }
  }

  private func observe(_ vault: VaultSnapshot) {
    let record = shared.accepted?.record
    let facts: [(isTrue: Bool, notice: VaultNotice)] = [
      (vault.slots.isRecovered, .recovered), (knownVaults.isRecordDamaged, .recordDamaged),
      (knownVaults.isUnrecorded, .unrecorded),
      (knownVaults.isBehind || knownVaults.isBehindAnew, .behind), (knownVaults.isBehindAnew, .behindAnew),
      (knownVaults.isFirstUse, .firstUse),
      (record?.policy == .versioned, .versioned), (record?.isDetached == true, .countsOnlyHere),
      (!vault.file.storage.isWritable, .readOnly),
      (vault.file.storage.isReadableByOthers, .readableByOthers),
    ]
    notices = Set(facts.filter(\.isTrue).map(\.notice))
    if vault.slots.isRecovered { foundDamagedSlot = true }
  }

  // MARK: Key slots

  /// Opens the slots that the vault's own credentials and `credentials` open, and unlocks the vault. If `opened` is
  /// given, asks only `credentials`, for the slots that are not in it.
  func openKeySlots(
    with credentials: [VaultCredentialSource], adding opened: OpenedKeySlots?, _ unlocking: Unlocking,
    _ scope: CredentialChain.Scope
  ) throws(SecretError) -> OpenedKeySlots {
    var found = opened ?? OpenedKeySlots()
    let file: VaultFile
    if keys != nil {
      let vault = try read(unlocking) { $0 }
      (file, found.vaultKeys) = (vault.file, vault.keys)
    } else {
      file = try openFile()
      try knownVaults.identify(file)
    }
    if opened == nil { try chain.open(&found, of: file, with: chain.sources, unlocking, scope) }
    try chain.open(&found, of: file, with: credentials, unlocking, .slots)
    keys = (file.header.vaultID, try chain.requireKeys(found, of: file))
    try read(unlocking) { _ in }
    return found
  }

  // MARK: Writing

  /// Runs `body` on the newest state of the vault while no other process writes, and again if the change is refused.
  func write<R>(
    _ unlocking: Unlocking, _ body: (VaultSnapshot) throws(SecretError) -> (R, Publication)
  ) throws(SecretError) -> R {
    // A change that was refused. It may have been made nevertheless: a request to an engine can come twice.
    var doubted: (result: R, state: Checkpoint)?
    do throws(SecretError) {
      return try withLock(exclusive: true) { () throws(SecretError) in
        var vault = try read(unlocking) { $0 }
        if !vault.file.storage.isWritable {
          // The file may have become writable since it was opened.
          close()
          vault = try read(unlocking) { $0 }
        }
        try vault.file.prepareForChange(allowingReaders: chain.options.isInWorkTree)
        return vault.file
      } _: { file throws(SecretError) in
        let vault = try current(unlocking, checked: file)
        if let former = doubted, try wasMade(former.state, vault) { return former.result }
        (doubted, sent) = (nil, nil)
        let (result, publication) = try body(vault)
        switch publication {
        case .done: return result
        case .refused:
          doubted = sent.map { (result, $0) }
          close()
          return nil
        case .unconfirmed(let error): throw .unconfirmed(error, path: path)
        }
      }
    } catch {
      guard let doubted, error.code != .outcomeUnknown else { throw error }
      let vault: VaultSnapshot
      do throws(SecretError) { vault = try read(unlocking) { $0 } } catch {
        throw .outcomeUnknown(path: path, "the vault cannot be read: \(error.reason)")
      }
      if try wasMade(doubted.state, vault) { return doubted.result }
      throw error
    }
  }

  /// Whether a change that was refused was made nevertheless, and cannot be lost any more. `state` is the one that it
  /// makes. Throws `.outcomeUnknown` if that cannot be told.
  private func wasMade(_ state: Checkpoint, _ vault: VaultSnapshot) throws(SecretError) -> Bool {
    guard let isShown = try vault.shows(state.sequence, isTag: { $0 == state.tailTag }) else {
      throw .outcomeUnknown(path: path, "the vault does not show it any more")
    }
    if isShown {
      do throws(SecretError) { try vault.file.storage.synchronize() } catch {
        throw .outcomeUnknown(path: path, "it is there, but may be lost: \(error.reason)")
      }
    }
    return isShown
  }

  /// Runs `body` on a transaction and commits its changes. If `body` throws, commits nothing and returns its error.
  func transaction<R, E: Error>(
    _ unlocking: Unlocking, _ body: (VaultTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    try write(unlocking) { vault throws(SecretError) in
      let transaction = VaultTransaction(vault, now: environment.now)
      let result = Result { () throws(E) in try body(transaction) }
      if case .failure = result { return (result, .done) }
      try leases?.requireHeld(by: transaction)
      if transaction.isEmpty && !vault.file.storage.mustBeReplaced {
        // What `body` has read may not be on the disk: its writer may have been killed before the barrier.
        try vault.file.storage.synchronize()
        return (result, .done)
      }
      return (result, try commit(transaction, to: vault))
    }
  }

  private func commit(_ transaction: VaultTransaction, to vault: VaultSnapshot) throws(SecretError) -> Publication {
    let notices = try transaction.notices()
    if let publication = try rewriteIfDue(vault, with: transaction) {
      if case .done = publication { shared.note(notices) }
      return publication
    }
    let (publication, after) = try vault.commit(transaction)
    sent = after.state.checkpoint
    if case .done = publication {
      shared.advance(from: vault, to: after, notices)
      if let record = shared.accepted?.record { knownVaults.recordCommit(record, from: vault, vault.keys) }
    }
    return publication
  }

  /// Writes a new file with the changes if a rewrite is due or required. Returns `nil` if the changes are to be
  /// appended.
  private func rewriteIfDue(
    _ vault: VaultSnapshot, with transaction: VaultTransaction
  ) throws(SecretError) -> Publication? {
    let (replayLength, fileID) = (transaction.tail.replayLength, vault.file.header.fileID)
    let isDue =
      vault.isDueForRewrite(before: transaction, threshold: environment.compactionThreshold)
      && nextRewrite.map { $0.fileID != fileID || replayLength >= $0.replayLength } ?? true
    let isRequired =
      vault.file.storage.mustBeReplaced || !transaction.erased.isEmpty
      || replayLength > Layout.maximumReplayLength
    guard isRequired || isDue else { return nil }
    do throws(SecretError) {
      return try rewrite(vault, VaultSnapshot.RewriteChanges(of: vault), transaction)
    } catch {
      // After a failed barrier the file cannot be trusted to keep what is written to it. Otherwise the changes can
      // still be appended, unless the new file took the vault's place in spite of the error.
      guard !isRequired, error.code != .outcomeUnknown, try vault.file.storage.current() != nil else { throw error }
      nextRewrite = (fileID, 2 * replayLength)
      return nil
    }
  }

  func rewrite(
    _ vault: VaultSnapshot, _ changes: VaultSnapshot.RewriteChanges, _ transaction: VaultTransaction
  ) throws(SecretError) -> Publication {
    try replace(vault, changes.keys) { recording throws(SecretError) in
      try vault.rewrite(changes, transaction, environment: environment, recording: recording)
    }
  }

  /// Publishes a new file, which `publish` writes, and records its state while nobody else can change it. From then on
  /// the old file is not used.
  func replace(
    _ vault: VaultSnapshot, _ newKeys: DerivedKeys,
    _ publish: ((CommitState) -> Void) throws(SecretError) -> (Publication, CommitState)
  ) throws(SecretError) -> Publication {
    let (publication, state) = try publish { state in
      guard var record = shared.accepted?.record else { return }
      record.checkpoint = state.checkpoint
      record.masterCommitment = newKeys.masterCommitment(record.vault)
      shared.close(accepting: SeenState(record, newKeys))
      knownVaults.recordCommit(record, from: vault, newKeys)
    }
    sent = state.checkpoint
    if case .refused = publication { return publication }
    keys = (vault.file.header.vaultID, newKeys)
    close()
    return publication
  }

  /// Writes the vault to a new file with the changes that `change` makes.
  func rewrite(
    _ unlocking: Unlocking,
    _ change: (VaultSnapshot, inout VaultSnapshot.RewriteChanges) throws(SecretError) -> Void
  ) throws(SecretError) {
    try write(unlocking) { vault throws(SecretError) in
      var changes = VaultSnapshot.RewriteChanges(of: vault)
      try change(vault, &changes)
      defer { knownVaults.unlockRecords() }
      if changes.keys !== vault.keys {
        // If there are records, the change is acknowledged only after it is recorded.
        try knownVaults.lockRecords(of: vault, timeout: lockTimeout)
      }
      return ((), try rewrite(vault, changes, VaultTransaction(vault, now: environment.now)))
    }
  }
}
