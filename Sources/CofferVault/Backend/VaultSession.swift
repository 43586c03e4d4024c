internal import CofferCore
internal import CofferVaultFormat

/// A vault in use by this process: opened on first use, read again before each use, and opened anew if another file has
/// taken its place.
///
/// What it has read and accepted is in a ``SharedSnapshot``, from which other threads read without it. Not thread-safe:
/// the owner holds a lock.
final class VaultSession {
  let path: String
  let chain: CredentialChain
  let environment: VaultEnvironment
  let shared: SharedSnapshot

  /// The keys that opened the vault last. They open a file that another process rewrote without unlocking it.
  private var keys: (vault: Bytes16, keys: DerivedKeys)?
  private(set) var knownVaults: KnownVaults
  /// The condition of the last file.
  private var condition: FileCondition?
  /// The notices of the last use of the vault.
  private(set) var notices: Set<VaultNotice>?
  /// Whether a commit slot was found damaged. The next change repairs it.
  private(set) var foundDamagedSlot = false

  init(path: String, chain: CredentialChain, shared: SharedSnapshot) {
    self.path = path
    self.chain = chain
    self.shared = shared
    environment = chain.environment
    knownVaults = KnownVaults(
      path: path, options: chain.options, environment: chain.environment, shared: shared)
  }

  /// Whether the vault was opened and not closed by the program since.
  var wasOpened: Bool { keys != nil }

  /// The errors that a reader without a lock may meet although the vault is whole.
  private static let suspicious: Set<SecretError.Code> = [
    .tampered, .rolledBack, .unexpectedKey, .unexpectedVault, .unverifiable,
  ]

  // MARK: Reading

  /// Runs `body` on the vault as it is now, without a lock.
  ///
  /// If a check fails, another process may have been writing to the file: the file is opened again under a
  /// shared lock, and only a second failure is reported.
  func read<R: ~Copyable>(
    _ unlocking: Unlocking, _ body: (VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    do throws(SecretError) {
      let vault = try current(unlocking)
      // One slot may be invalid because a commit is writing it. Reading again under a lock tells.
      guard vault.slots.isRecovered, !vault.wasOpenedLocked else {
        observe(vault)
        return try body(vault)
      }
    } catch {
      guard Self.suspicious.contains(error.code) else { throw error }
    }
    return try readLocked(unlocking, body)
  }

  /// Opens the vault again and runs `body` on it while no process writes.
  func readLocked<R: ~Copyable>(
    _ unlocking: Unlocking, _ body: (VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    shared.close()
    return try withLock(exclusive: false, of: file) { file throws(SecretError) in
      let opened = try open(file, unlocking, isLocked: true)
      observe(opened)
      return try body(opened)
    }
  }

  /// Opens the vault or catches up with its changes.
  private func current(_ unlocking: Unlocking) throws(SecretError) -> VaultSnapshot {
    do throws(SecretError) {
      if let snapshot = try shared.refreshed() {
        knownVaults.recordRead(snapshot, isUrgent: false)
        return snapshot
      }
    } catch {
      // The next use opens the file again.
      shared.close()
      throw error
    }
    shared.close()
    let previous = shared.accepted?.record.checkpoint
    let opened = try open(file(), unlocking)
    if let previous, previous != opened.state.checkpoint { shared.note([SecretChange(nil)]) }
    return opened
  }

  /// Opens the file that the path names now.
  private func file() throws(SecretError) -> VaultFile {
    let file = try VaultFile(path: path, environment: environment, known: condition)
    condition = file.condition
    return file
  }

  private func open(
    _ file: VaultFile, _ unlocking: Unlocking, isLocked: Bool = false
  ) throws(SecretError) -> VaultSnapshot {
    try knownVaults.identify(file)
    let opened = try VaultSnapshot(file, keys: keys(of: file, unlocking), isLocked: isLocked)
    keys = (file.header.vaultID, opened.keys)
    try knownVaults.admitAndPublish(opened)
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

  /// Records what readers have accepted.
  func settle() {
    if let snapshot = shared.current { knownVaults.recordRead(snapshot, isUrgent: false) }
  }

  /// Releases the file and the keys. What was accepted of the vault is remembered.
  func closeAndForgetKeys() {
    if shared.current != nil {
      // The readers may have accepted a later state.
      do throws(SecretError) {
        knownVaults.recordRead(try current(.never), isUrgent: true)
      } catch {
        // What was accepted before is recorded, except perhaps for the last second.
      }
    }
    shared.close()
    keys = nil
  }

  /// Runs `body` on the vault as it is now, if `pins` accept it, whatever was accepted before, while no process writes.
  private func readUnconfirmed<R>(
    _ unlocking: Unlocking, _ pins: VaultPins, _ body: (VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withLock(exclusive: false, of: file) { file throws(SecretError) in
      let opened = try VaultSnapshot(file, keys: keys(of: file, unlocking))
      keys = (file.header.vaultID, opened.keys)
      try pins.requireIdentity(file)
      _ = try pins.areShown(by: opened)
      return try body(opened)
    }
  }

  /// Accepts the vault as it is now, if `pins` do, whatever was accepted before. Returns its pin.
  func trust(
    _ policy: KnownVaultRecord.Policy?, _ pins: VaultPins, isDetached: Bool?, knowsOtherKey: Bool,
    _ unlocking: Unlocking
  ) throws(SecretError) -> String {
    try readUnconfirmed(unlocking, pins) { opened throws(SecretError) in
      try knownVaults.trustAndPublish(opened, policy, isDetached: isDetached, knowsOtherKey: knowsOtherKey)
      return VaultPin(opened).description
    }
  }

  /// The vault as it is now, if `pins` accept it, whatever was accepted before: see ``VaultBackend/unconfirmed(pin:)``.
  func unconfirmed(
    _ pins: VaultPins, _ unlocking: Unlocking
  ) throws(SecretError) -> VaultBackend.Unconfirmed {
    try readUnconfirmed(unlocking, pins) { opened throws(SecretError) in try knownVaults.unconfirmed(opened) }
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
      (knownVaults.isUnrecorded, .unrecorded), (knownVaults.ignoresPins, .pinsIgnored),
      (knownVaults.isFirstUse, .firstUse), (record?.policy == .versioned, .versioned),
      (record?.isDetached == true, .countsOnlyHere), (!vault.file.isWritable, .readOnly),
      (vault.file.isReadableByOthers, .readableByOthers),
    ]
    notices = Set(facts.filter(\.isTrue).map(\.notice))
    if vault.slots.isRecovered { foundDamagedSlot = true }
  }

  // MARK: Key slots

  /// Opens the slots that the vault's own credentials and `credentials` open, beyond those in `opened`, for which only
  /// `credentials` are asked. Unlocks the vault with what it finds.
  func openKeySlots(
    with credentials: [VaultCredentialSource], adding opened: OpenedKeySlots?, _ unlocking: Unlocking,
    _ scope: CredentialChain.Scope
  ) throws(SecretError) -> OpenedKeySlots {
    var found = opened ?? OpenedKeySlots()
    let file: VaultFile
    if keys != nil {
      let vault = try read(unlocking) { vault in vault }
      (file, found.vaultKeys) = (vault.file, vault.keys)
    } else {
      file = try self.file()
      try knownVaults.identify(file)
    }
    if opened == nil { try chain.open(&found, of: file, with: chain.sources, unlocking, scope) }
    try chain.open(&found, of: file, with: credentials, unlocking, .slots)
    keys = (file.header.vaultID, try chain.requireKeys(found, of: file))
    try read(unlocking) { _ in }
    return found
  }

  // MARK: Writing

  /// Runs `body` on the newest state of the vault while no other process writes.
  private func write<R>(
    _ unlocking: Unlocking, _ body: (VaultSnapshot) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withLock(exclusive: true) { () throws(SecretError) in
      var vault = try read(unlocking) { vault throws(SecretError) in vault }
      if !vault.file.isWritable {
        // The file may have become writable since it was opened.
        shared.close()
        vault = try read(unlocking) { vault throws(SecretError) in vault }
      }
      try vault.file.requireWritable(allowingReaders: chain.options.isInWorkTree)
      return vault.file
    } _: { _ throws(SecretError) in
      try body(try current(unlocking))
    }
  }

  /// Runs `body` on a transaction and commits its changes, unless `body` throws, whose error is the result.
  func transaction<R, E: Error>(
    _ unlocking: Unlocking, _ body: (VaultTransaction) throws(E) -> R
  ) throws(SecretError) -> Result<R, E> {
    try write(unlocking) { vault throws(SecretError) in
      let transaction = VaultTransaction(vault, now: environment.now)
      do throws(SecretError) {
        let result = Result { () throws(E) in try body(transaction) }
        if case .failure = result {
          transaction.abandon()
        } else if transaction.isEmpty && !vault.file.condition.now.didFailSync {
          // A writer that was killed before its barrier may have left what `body` has read.
          try vault.file.synchronize()
        } else {
          try commit(transaction, to: vault)
        }
        return result
      } catch {
        transaction.abandon()
        throw error
      }
    }
  }

  private func commit(_ transaction: VaultTransaction, to vault: VaultSnapshot) throws(SecretError) {
    let notices = try transaction.notices()
    if let replacement = try replacement(of: vault, with: transaction) {
      try finish(replacement, vault.keys, after: vault)
      shared.note(notices)
    } else {
      try vault.file.synchronizeName()
      shared.advance(from: vault, to: try vault.commit(transaction), notices)
      if let record = shared.accepted?.record { knownVaults.recordCommit(record, from: vault, vault.keys) }
    }
  }

  /// Writes a new file with the changes if a rewrite is due or required. Returns `nil` if the changes are to
  /// be appended.
  private func replacement(
    of vault: VaultSnapshot, with transaction: VaultTransaction
  ) throws(SecretError) -> Replacement? {
    let condition = vault.file.condition
    let replayLength = transaction.tail.replayLength
    let isDue =
      vault.isDueForRewrite(before: transaction, threshold: environment.compactionThreshold)
      && replayLength >= condition.now.nextRewrite
    let isRequired =
      condition.now.didFailSync || !transaction.erased.isEmpty || replayLength > Layout.maximumReplayLength
    guard isRequired || isDue else { return nil }
    do throws(SecretError) {
      return try vault.rewrite(VaultSnapshot.RewriteChanges(of: vault), transaction, environment: environment)
    } catch {
      // After a failed barrier the file cannot be trusted to keep what is written to it. Otherwise the
      // changes can be appended although the rewrite failed.
      if isRequired { throw error }
      condition.change { $0.nextRewrite = 2 * replayLength }
      return nil
    }
  }

  /// Makes a new file durable that is in the vault's place. From now on the old one is not used, even if this
  /// fails.
  private func finish(
    _ replacement: Replacement, _ newKeys: DerivedKeys, after vault: VaultSnapshot
  ) throws(SecretError) {
    shared.close()
    do throws(SecretError) { try replacement.writer.finishReplace() } catch {
      throw error.code == .io ? .unconfirmed(error, path: path) : error
    }
    guard var record = shared.accepted?.record else { return }
    record.checkpoint = replacement.state.checkpoint
    record.masterCommitment = newKeys.masterCommitment(record.vault)
    shared.close(accepting: SeenState(record, newKeys))
    knownVaults.recordCommit(record, from: vault, newKeys)
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
        // The change is not acknowledged before it is recorded, if there are records.
        try knownVaults.lockRecords(of: vault, timeout: chain.options.lockTimeout)
      }
      let replacement = try vault.rewrite(
        changes, VaultTransaction(vault, now: environment.now), environment: environment)
      keys = (vault.file.header.vaultID, changes.keys)
      try finish(replacement, changes.keys, after: vault)
    }
  }
}
