internal import CofferCore
internal import CofferVaultFormat

/// A vault in use by this process: opened on first use, looked at again before each use, and opened anew if
/// another file has taken its place.
///
/// Not thread-safe: the owner holds a lock.
final class VaultSession {
  let path: String
  let chain: CredentialChain
  let environment: VaultEnvironment

  private var open: UnlockedVault? { didSet { readers.follow(open) } }
  /// The keys that opened the vault last. They open a file that another process rewrote without unlocking it.
  private var keys: (vault: Bytes16, keys: DerivedKeys)?
  private var knownVaults: KnownVaults
  private let readers: VaultReaders
  /// The condition of the last file.
  private var condition: FileCondition?
  /// The condition of the vault at its last use.
  private(set) var lastCondition: VaultCondition?
  /// Whether a commit slot was found damaged. The next change repairs it.
  private(set) var foundDamagedSlot = false
  /// How a use may unlock the vault if the keys that opened it last do not open it any more.
  enum Unlocking { case asNeeded, withoutPrompts, never }
  private var unlocking = Unlocking.asNeeded
  /// Whether sources of credentials that may show a prompt are asked.
  var mayPrompt: Bool { unlocking == .asNeeded }
  /// The changes since they were last taken.
  private var changes: [SecretChange] = []

  /// `readers` read the vault beside this session, in other threads.
  init(path: String, chain: CredentialChain, readers: VaultReaders) {
    self.path = path
    self.chain = chain
    self.readers = readers
    environment = chain.environment
    knownVaults = KnownVaults(path: path, options: chain.options, environment: chain.environment)
  }

  /// Whether the vault was opened and not closed by the program since.
  var wasOpened: Bool { keys != nil }

  /// Runs `body`. Then the readers accept nothing older than what it has seen.
  func use<R: ~Copyable>(
    _ unlocking: Unlocking, _ body: (VaultSession) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    self.unlocking = unlocking
    defer { readers.learn(knownVaults.seenHere) }
    return try body(self)
  }

  func takeChanges() -> [SecretChange] {
    defer { changes = [] }
    return changes
  }

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
    _ body: (UnlockedVault) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    do throws(SecretError) {
      let vault = try current()
      // One slot may be invalid because a commit is writing it. A second look under a lock tells.
      guard vault.slots.isRecovered, !vault.wasOpenedLocked else {
        observe(vault)
        return try body(vault)
      }
    } catch {
      guard Self.suspicious.contains(error.code) else { throw error }
    }
    return try readLocked(body)
  }

  /// Opens the vault again and runs `body` on it while no process writes.
  func readLocked<R: ~Copyable>(
    _ body: (UnlockedVault) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    close()
    return try withLock(exclusive: false, of: file) { file throws(SecretError) in
      let opened = try open(file)
      opened.wasOpenedLocked = true
      observe(opened)
      return try body(opened)
    }
  }

  /// Opens the vault or catches up with its changes.
  private func current() throws(SecretError) -> UnlockedVault {
    if let open {
      // Before the look: what a reader sees during it may be newer.
      knownVaults.seenByReaders = readers.seen
      do throws(SecretError) {
        if try open.file.isCurrent() {
          changes += try open.refresh().map { SecretChange($0) }
          try knownVaults.check(open)
          return open
        }
      } catch {
        // The next use begins with a new look.
        close()
        throw error
      }
      close()
    }
    let previous = knownVaults.newest
    let opened = try open(file())
    if let previous, previous != opened.state.checkpoint { changes.append(SecretChange(nil)) }
    return opened
  }

  /// Opens the file that the path names now.
  private func file() throws(SecretError) -> VaultFile {
    let file = try VaultFile(path: path, environment: environment, known: condition)
    condition = file.condition
    return file
  }

  private func open(_ file: VaultFile) throws(SecretError) -> UnlockedVault {
    knownVaults.seenByReaders = readers.seen
    try knownVaults.identify(file)
    let fileKeys: DerivedKeys
    if let keys, keys.vault == file.header.vaultID, keys.keys.isCommitted(to: file.header) {
      try keys.keys.authenticate(file.header)
      fileKeys = keys.keys
    } else {
      if unlocking == .never { throw SecretError(.locked, "The vault at \(path) is not open.") }
      fileKeys = try chain.unlock(file, mayPrompt: mayPrompt)
    }
    let opened = try UnlockedVault(file, keys: fileKeys)
    keys = (file.header.vaultID, fileKeys)
    try knownVaults.admit(opened)
    open = opened
    return opened
  }

  /// Releases the file and its lock.
  func close() { open = nil }

  /// Releases the file and the keys. What was seen of the vault is remembered.
  func closeAndForgetKeys() {
    if open != nil {
      // The readers may have seen a later state.
      do throws(SecretError) {
        knownVaults.recordSeen(try current(), isUrgent: true)
      } catch {
        // What was seen before is recorded, except perhaps for the last second.
      }
    }
    close()
    keys = nil
    knownVaults.forgetKeys()
  }

  /// Accepts the vault as it is now, whatever was seen before. Returns its checkpoint.
  func trust(_ policy: KnownVaultRecord.Policy?) throws(SecretError) -> String {
    try withLock(exclusive: false, of: file) { file throws(SecretError) in
      let opened = try UnlockedVault(file, keys: chain.unlock(file, mayPrompt: mayPrompt))
      try knownVaults.trust(opened, policy)
      readers.forget()
      (open, keys) = (opened, (file.header.vaultID, opened.keys))
      return opened.state.checkpoint.description
    }
  }

  private func observe(_ vault: UnlockedVault) {
    lastCondition = VaultCondition(
      isRecovered: vault.slots.isRecovered,
      isReadableByOthers: vault.file.isReadableByOthers, isWritable: vault.file.isWritable,
      trustPolicy: TrustPolicy(knownVaults.admittedPolicy), isRecordDamaged: knownVaults.isRecordDamaged,
      isUnrecorded: knownVaults.isUnrecorded)
    if vault.slots.isRecovered { foundDamagedSlot = true }
  }

  // MARK: Writing

  /// Runs `body` on the newest state of the vault while no other process writes.
  private func write<R>(_ body: (UnlockedVault) throws(SecretError) -> R) throws(SecretError) -> R {
    try withLock(exclusive: true) { () throws(SecretError) in
      var vault = try read { vault throws(SecretError) in vault }
      if !vault.file.isWritable {
        // It may have become writable since it was opened.
        close()
        vault = try read { vault throws(SecretError) in vault }
      }
      try vault.file.requireWritable()
      return vault.file
    } _: { _ throws(SecretError) in
      try body(try current())
    }
  }

  /// Runs `body` on a transaction and commits its changes.
  func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try vaultTransaction { transaction, _ throws(SecretError) in try body(transaction) }
  }

  /// Runs `body` on a transaction and the vault that it changes, and commits its changes.
  func vaultTransaction<R>(
    _ body: (VaultTransaction, UnlockedVault) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try write { vault throws(SecretError) in
      let transaction = VaultTransaction(vault, now: environment.now)
      defer { transaction.isOpen = false }
      let result = try body(transaction, vault)
      if !transaction.isEmpty { try commit(transaction, to: vault) }
      return result
    }
  }

  private func commit(_ transaction: VaultTransaction, to vault: UnlockedVault) throws(SecretError) {
    if let replacement = try replacement(of: vault, with: transaction) {
      try finish(replacement, vault.keys, after: vault)
    } else {
      try vault.file.synchronizeName()
      try vault.append(transaction)
      knownVaults.advance(to: vault.state.checkpoint, vault.keys, from: vault)
    }
    changes += transaction.changes.map { SecretChange($0.identifier) }
  }

  /// Writes a new file with the changes if a rewrite is due or required. Returns `nil` if the changes are to
  /// be appended.
  private func replacement(
    of vault: UnlockedVault, with transaction: VaultTransaction
  ) throws(SecretError) -> Replacement? {
    let condition = vault.file.condition
    let replayLength = vault.replayLength + transaction.addedReplayLength
    let isDue =
      vault.isDueForRewrite(before: transaction, threshold: environment.compactionThreshold)
      && replayLength >= condition.nextRewrite
    let isRequired =
      condition.didFailSync || !transaction.purged.isEmpty || replayLength > Layout.maximumReplayLength
    guard isRequired || isDue else { return nil }
    do throws(SecretError) {
      return try vault.rewrite(
        UnlockedVault.RewriteChanges(of: vault), transaction: transaction, environment: environment)
    } catch {
      // After a failed barrier the file cannot be trusted to keep what is written to it. Otherwise the
      // changes can be appended although the rewrite failed.
      if isRequired { throw error }
      condition.nextRewrite = 2 * replayLength
      return nil
    }
  }

  /// Makes a new file durable that is in the vault's place. From now on the old one is not used, even if this
  /// fails.
  private func finish(
    _ replacement: Replacement, _ newKeys: DerivedKeys, after vault: UnlockedVault
  ) throws(SecretError) {
    close()
    do throws(SecretError) { try replacement.writer.finishReplace() } catch {
      throw error.code == .io ? .unconfirmed(error, path: path) : error
    }
    knownVaults.advance(to: replacement.state.checkpoint, newKeys, from: vault)
  }

  /// Writes the vault to a new file with the changes that `change` makes.
  func rewrite(
    _ change: (UnlockedVault, inout UnlockedVault.RewriteChanges) throws(SecretError) -> Void
  ) throws(SecretError) {
    try write { vault throws(SecretError) in
      var changes = UnlockedVault.RewriteChanges(of: vault)
      try change(vault, &changes)
      let replacement = try vault.rewrite(changes, environment: environment)
      keys = (vault.file.header.vaultID, changes.keys)
      try finish(replacement, changes.keys, after: vault)
    }
  }
}
