internal import CofferSystem
package import CofferVaultFormat
package import CofferCore
internal import Glibc

/// A vault in use by this process: opened when first needed, looked at again before each use, opened anew
/// when another file has taken its place. Not thread-safe; its owner has a lock.
package final class VaultSession {
  package let path: String
  private let sources: [any VaultCredentialSource]
  package let options: VaultOptions
  package let environment: VaultEnvironment

  private var open: UnlockedVault?
  /// The keys that opened the vault last, and which it was: a rewrite by someone else needs no new unlock.
  private var keys: (vaultID: Bytes16, keys: DerivedKeys)?
  /// The newest state seen of that vault, now or in an earlier run.
  private var newest: Checkpoint?
  private var watermark: Watermark?
  /// The file of which a barrier failed: the next change writes a new one.
  private var suspect: FileStatus?
  /// A rewrite was refused: no other is tried before the tail is this long.
  private var rewriteNotBefore = 0
  /// The file whose name is known to be on the disk.
  private var settled: FileStatus?
  /// What has changed since it was last taken.
  private var changes: [SecretChange] = []

  package init(
    path: String,
    sources: [any VaultCredentialSource],
    options: VaultOptions,
    environment: VaultEnvironment
  ) {
    self.path = path
    self.sources = sources
    self.options = options
    self.environment = environment
  }

  /// Whether the vault has been opened, so that a look at it needs no credential.
  package var isOpen: Bool { open != nil }

  package func takeChanges() -> [SecretChange] {
    defer { changes = [] }
    return changes
  }

  // MARK: Reading

  /// Runs `body` on the vault as it is now, without a lock. Where a check fails, someone may have been
  /// writing over the file: it is opened again with a shared lock, and only then is the failure reported.
  package func read<R: ~Copyable>(
    _ body: (UnlockedVault) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    do throws(SecretError) {
      return try body(try current())
    } catch {
      guard error.code == .tampered || error.code == .rolledBack else { throw error }
      return try readLocked(body)
    }
  }

  /// Runs `body` on the vault, opened afresh, while nobody writes.
  package func readLocked<R: ~Copyable>(
    _ body: (UnlockedVault) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    open = nil
    return try locked(exclusive: false, file) { vault throws(SecretError) in try body(try open(vault)) }
  }

  /// The vault, opened or caught up with.
  private func current() throws(SecretError) -> UnlockedVault {
    if let open {
      do throws(SecretError) {
        if try open.vault.isCurrent() {
          let changed = try open.refresh()
          changes += changed.map { SecretChange($0) }
          try remember(open.state)
          return open
        }
      } catch {
        // The next use begins with a new look, whatever this one met.
        self.open = nil
        throw error
      }
    }
    let previous = newest
    let opened = try open(file())
    if let previous, previous != opened.state.checkpoint { changes.append(SecretChange(nil)) }
    return opened
  }

  /// The file that the path names now.
  private func file() throws(SecretError) -> VaultFile {
    try VaultFile(path: path, environment: environment)
  }

  private func open(_ vault: VaultFile) throws(SecretError) -> UnlockedVault {
    let vaultKeys: DerivedKeys
    if let keys, keys.vaultID == vault.header.vaultID, keys.keys.isCommitted(to: vault.header) {
      try keys.keys.authenticate(vault.header)
      vaultKeys = keys.keys
    } else {
      vaultKeys = try vault.unlock(with: sources, limits: options)
    }
    let opened = try UnlockedVault(vault, keys: vaultKeys)
    let vaultID = vault.header.vaultID
    // Another vault in this one's place has a history of its own, and another master key another watermark.
    if keys?.vaultID != vaultID { newest = nil }
    if keys?.keys !== vaultKeys || watermark == nil, let directory = options.watermarkDirectory {
      watermark = Watermark(in: directory, of: vault, keys: vaultKeys, environment: environment)
      if newest == nil, let (checkpoint, isAuthentic) = watermark?.checkpoint(),
        isAuthentic || opened.state.sequence < checkpoint.sequence
      {
        newest = checkpoint
      }
    }
    keys = (vaultID, vaultKeys)
    let before = newest
    try remember(opened.state)
    if before != opened.state.checkpoint { raiseWatermark(to: opened) }
    open = opened
    return opened
  }

  /// Throws `.rolledBack` where a newer state was seen before, or another one of the same sequence.
  private func remember(_ state: CommitState) throws(SecretError) {
    if let newest, state.checkpoint.contradicts(newest) {
      throw .rolledBack(path: path, seen: newest, found: state.checkpoint)
    }
    newest = state.checkpoint
  }

  /// Remembers a state that was read. Its writer may have been killed before its last barriers, so they are made
  /// once more here, the directory's too: only what is on the disk may be remembered.
  private func raiseWatermark(to vault: UnlockedVault, evenIfLower: Bool = false) {
    guard let watermark else { return }
    if !evenIfLower, let known = watermark.checkpoint(), known.isAuthentic,
      known.0.sequence >= vault.state.sequence
    {
      return
    }
    do throws(SecretError) {
      do throws(FileSystemError) { try vault.vault.file.synchronizeData() } catch { return }
      try settle(vault.vault)
    } catch { return }
    watermark.raise(to: vault.state.checkpoint)
  }

  /// Takes the vault as it is now for the newest state there is.
  package func acceptRollback() throws(SecretError) -> String {
    try locked(exclusive: false, file) { vault throws(SecretError) in
      let vaultKeys = try vault.unlock(with: sources, limits: options)
      let opened = try UnlockedVault(vault, keys: vaultKeys)
      (open, keys, newest) = (opened, (vault.header.vaultID, vaultKeys), opened.state.checkpoint)
      if let directory = options.watermarkDirectory {
        watermark = Watermark(in: directory, of: vault, keys: vaultKeys, environment: environment)
      }
      raiseWatermark(to: opened, evenIfLower: true)
      return opened.state.checkpoint.description
    }
  }

  // MARK: Locking

  /// Runs `body` with the lock of the vault that `candidate` gives. Another file may have taken its place while
  /// this process waited for the lock: then it is asked again.
  private func locked<R: ~Copyable>(
    exclusive: Bool,
    _ candidate: () throws(SecretError) -> VaultFile,
    _ body: (VaultFile) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    let deadline = environment.monotonicSeconds() + options.lockTimeout
    while true {
      let vault = try candidate()
      try acquireLock(of: vault.file, exclusive: exclusive)
      defer { releaseLock(of: vault.file) }
      if try vault.isCurrent() { return try body(vault) }
      guard environment.monotonicSeconds() < deadline else {
        throw SecretError(
          .timedOut,
          "The vault at \(path) was replaced again and again for \(options.lockTimeout) seconds.",
          advice: "Try again."
        )
      }
    }
  }

  /// Takes a file's lock, or throws `.timedOut` at the deadline.
  private func acquireLock(of file: any File, exclusive: Bool) throws(SecretError) {
    let deadline = environment.monotonicSeconds() + options.lockTimeout
    var pause = 0.0005
    while true {
      do throws(FileSystemError) {
        if try uninterrupted({ () throws(FileSystemError) in try file.tryLock(exclusive: exclusive) }) {
          return
        }
      } catch { throw .io(error, "lock", path: path) }
      guard environment.monotonicSeconds() < deadline else {
        throw SecretError(
          .timedOut,
          "Another process kept the vault at \(path) busy for \(options.lockTimeout) seconds.",
          advice: "Try again; if it lasts, see which process has it open."
        )
      }
      environment.sleep(pause)
      pause = min(pause * 1.5, 0.01)
    }
  }

  private func releaseLock(of file: any File) {
    do throws(FileSystemError) {
      try uninterrupted { () throws(FileSystemError) in try file.unlock() }
    } catch {
      // Closing the file lets it go as well.
      open = nil
    }
  }

  // MARK: Writing

  /// Runs `body` with the vault locked against every other writer, and its newest state read.
  private func write<R>(_ body: (UnlockedVault) throws(SecretError) -> R) throws(SecretError) -> R {
    try locked(exclusive: true) { () throws(SecretError) in
      var vault = try read { (vault) throws(SecretError) in vault }
      if !vault.vault.isWritable {
        // It may have become writable since it was opened.
        open = nil
        vault = try read { (vault) throws(SecretError) in vault }
      }
      try vault.vault.requireWritable()
      return vault.vault
    } _: { _ throws(SecretError) in
      try body(try current())
    }
  }

  /// Runs `body` on a transaction and commits what it changed.
  package func transaction<R>(
    _ body: (any SecretTransaction) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try write { vault throws(SecretError) in
      let transaction = VaultTransaction(vault, environment: environment)
      defer { transaction.isOpen = false }
      let result = try body(transaction)
      if !transaction.changes.isEmpty { try commit(transaction, to: vault) }
      return result
    }
  }

  private func commit(_ transaction: VaultTransaction, to vault: UnlockedVault) throws(SecretError) {
    let cost = transaction.changes.reduce(0) {
      $0 + Layout.frameHeaderLength + Layout.padded($1.metadata.count) + Layout.sealOverhead
    }
    let isDue = vault.isDueForRewrite(
      addedCost: cost, addedDeadBytes: transaction.addedDeadBytes,
      compactionThreshold: environment.compactionThreshold)
    let isSuspect = suspect?.isSameFile(as: vault.vault.status) ?? false
    if isSuspect || (isDue && vault.tailReplayBytes + cost >= rewriteNotBefore) {
      do throws(SecretError) {
        let new = try vault.rewrite(
          header: vault.vault.header,
          keys: vault.keys,
          transaction: transaction,
          randomness: environment.randomness
        )
        return try settle(new, changed: transaction.changes.map { SecretChange($0.identifier) })
      } catch {
        // Where the new file is in place and its barrier failed, or the old one cannot be trusted to keep
        // what is written to it, there is nothing to go back to. Otherwise the change still fits in place.
        if isSuspect || open == nil { throw error }
        rewriteNotBefore = 2 * (vault.tailReplayBytes + cost)
      }
    }
    try settle(vault.vault)
    do throws(SecretError) {
      try vault.append(transaction, randomness: environment.randomness)
    } catch {
      if vault.isSuspect { suspect = vault.vault.status }
      throw error
    }
    newest = vault.state.checkpoint
    watermark?.raise(to: vault.state.checkpoint)
    changes += transaction.changes.map { SecretChange($0.identifier) }
  }

  /// Makes sure, once for each file, that its name is on the disk. Whoever put the file there may have been
  /// killed, or failed, before its last barrier: a power loss would then bring the old file back, without
  /// what is acknowledged from now on.
  private func settle(_ vault: VaultFile) throws(SecretError) {
    if settled?.isSameFile(as: vault.status) ?? false { return }
    do throws(FileSystemError) {
      try uninterrupted { () throws(FileSystemError) in try vault.location.directory.synchronize() }
    } catch { throw .io(error, "write", path: path) }
    settled = vault.status
  }

  /// Makes a file that is in place durable, and goes on with it.
  private func settle(_ new: VaultFileWriter, changed: [SecretChange]) throws(SecretError) {
    open = nil
    try new.settle()
    rewriteNotBefore = 0
    newest = new.state?.checkpoint
    if let newest { watermark?.raise(to: newest) }
    changes += changed
  }

  /// Writes the vault anew, with other key slots and perhaps other keys.
  package func rewrite(
    _ change: (UnlockedVault) throws(SecretError) -> (slots: [KeySlot], keys: DerivedKeys)
  ) throws(SecretError) {
    try write { vault throws(SecretError) in
      let (slots, newKeys) = try change(vault)
      var header = vault.vault.header
      header.slots = slots
      let new = try vault.rewrite(
        header: header,
        keys: newKeys,
        transaction: nil,
        randomness: environment.randomness
      )
      if newKeys !== vault.keys { watermark = nil }
      keys = (header.vaultID, newKeys)
      try settle(new, changed: [])
    }
  }

  // MARK: Credentials

  /// Which slot each source's credential opens, and with what secret: for wrapping another master key. The
  /// vault's own sources come first.
  package func slotSecrets(
    of vault: VaultFile,
    others: [any VaultCredentialSource],
    _ use: (KeySlot, borrowing SlotKey) throws(SecretError) -> Void
  ) throws(SecretError) {
    let description = vault.description
    var opened: Set<Bytes16> = []
    for source in sources + others {
      guard let credential = try source.credential(for: description) else { continue }
      for slot in vault.header.slots where !opened.contains(slot.id) {
        guard
          let secret = try SlotKey(
            credential,
            parameters: slot.parameters,
            salt: slot.salt,
            limits: options
          ),
          try secret.unwrap(slot, vaultID: vault.header.vaultID) != nil
        else { continue }
        opened.insert(slot.id)
        try use(slot, secret)
      }
    }
  }
}
