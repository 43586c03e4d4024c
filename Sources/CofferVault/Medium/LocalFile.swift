internal import CofferCore
internal import CofferSystem
internal import CofferLibc

/// An open vault file on this machine. Thread-safe.
final class LocalFile: MediumFile {
  private let location: StorageLocation
  private let storage: StorageFile
  private let environment: VaultEnvironment
  private let facts: FileFacts
  let isWritable: Bool
  let names: [String]

  var path: String { location.path }
  var isReadableByOthers: Bool { facts.now.status.mode & 0o044 != 0 }
  var mustBeReplaced: Bool { facts.now.didFailSync }

  /// Throws `.denied` if a user other than this one and root owns the file or could change it.
  init(
    _ storage: StorageFile, at location: StorageLocation, isOpenForWriting: Bool, _ facts: FileFacts,
    _ environment: VaultEnvironment
  ) throws(SecretError) {
    (self.storage, self.location, self.facts, self.environment) = (storage, location, facts, environment)
    let status = facts.now.status
    isWritable = isOpenForWriting && status.owner == environment.user
    // Absolute, because the working directory may change.
    let fullPath = LocalMedium.absolute(location.path)
    var names = [fullPath]
    for name in [location.linkPath, location.resolvedPath] where !names.hasBytes(of: name) {
      names.append(name)
    }
    self.names = names
    try requireTrustworthy(status)
  }

  func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    try storage.read(count, at: offset)
  }

  func beginning(_ count: Int) throws(SecretError) -> [UInt8] { try storage.readSome(count, at: 0) }

  func size() throws(SecretError) -> Int { try storage.status().size }

  func current() throws(SecretError) -> (any MediumFile)? {
    let now: FileStatus
    do throws(FileSystemError) {
      // The path may lead to another directory by now.
      now = try uninterrupted { () throws(FileSystemError) in
        try environment.fileSystem.status(ofPath: names[0])
      }
    } catch {
      if [ENOENT, ENOTDIR].contains(error.number) { return nil }
      throw .io(error, "open", path: path)
    }
    guard now.isSameFile(as: facts.now.status) else { return nil }
    facts.change { $0.status = now }
    try requireTrustworthy(now)
    return self
  }

  // MARK: Rights

  func prepareForChange(allowingReaders: Bool) throws(SecretError) {
    if !isWritable { throw .io(FileSystemError(EACCES), "write", path: path) }
    guard facts.now.status.mode & (allowingReaders ? 0o033 : 0o077) == 0 else {
      throw SecretError(
        .denied, "The vault at \(path) is open to other users, so it was not changed.",
        advice: "Close it with `chmod 600 \(path.quotedForShell)` first.")
    }
    try synchronizeName()
  }

  /// Nobody but this user and root may have written what this user reads, unless a pin is compared with it.
  private func requireTrustworthy(_ status: FileStatus) throws(SecretError) {
    guard status.owner == environment.user || status.owner == 0 || environment.readsFilesOfOthers else {
      throw SecretError(
        .denied, "The vault at \(path) belongs to another user.",
        advice: "Use it as its owner, copy it to a file of your own, or give its pin at each use, as in COFFER_PIN.")
    }
    guard status.mode & 0o022 == 0 else {
      throw SecretError(
        .denied, "Other users can change the vault at \(path).",
        advice: "Run `chmod go-w \(path.quotedForShell)`, and consider who may have changed it.")
    }
  }

  // MARK: Locks

  func tryLock(exclusive: Bool) throws(SecretError) -> Bool { try storage.tryLock(exclusive: exclusive) }

  func unlock() throws(SecretError) { try storage.unlock() }

  func tryLease(_ number: Int64) throws(SecretError) -> (any Sendable)? {
    let path = location.resolvedPath + ".leases"
    do throws(FileSystemError) { return try ByteLock.tryLock(path, offset: number) } catch {
      throw .system(error, "The file \(path) for leases cannot be locked")
    }
  }

  // MARK: Changes

  func synchronize() throws(SecretError) {
    try barrier()
    try synchronizeName()
  }

  private func barrier() throws(SecretError) {
    do throws(SecretError) { try storage.synchronizeData() } catch {
      facts.change { $0.didFailSync = true }
      throw error
    }
  }

  /// Ensures that the file's name is on the disk, once for each file.
  ///
  /// The process that moved the file here may have failed before its last barrier. Without this barrier a power loss
  /// could bring the old file back, without the changes that are acknowledged from now on.
  private func synchronizeName() throws(SecretError) {
    if facts.now.isNameDurable { return }
    try location.synchronize()
    facts.change { $0.isNameDurable = true }
  }

  func draft() throws(SecretError) -> any MediumDraft { try LocalDraft(at: location, environment, replacing: facts) }

  /// Writes the bytes, then one commit slot, each followed by a barrier, and then the other commit slot.
  func publish(_ appendix: Appendix) throws(SecretError) -> (Publication, any MediumFile) {
    try synchronizeName()
    do throws(SecretError) {
      // Bytes after the end are from an interrupted commit, which was never acknowledged.
      if try size() > appendix.offset { try storage.truncate(to: appendix.offset) }
      try storage.write(appendix.bytes, at: appendix.offset)
      try barrier()
    } catch {
      // Readers ignore the bytes. If they cannot be removed now, the next writer removes them.
      do throws(SecretError) { try storage.truncate(to: appendix.offset) } catch {}
      throw error
    }
    do throws(SecretError) { try storage.write(appendix.slots[0].page, at: appendix.slots[0].offset) } catch {
      // A part of the slot may have been written, so the bytes must stay.
      facts.change { $0.didFailSync = true }
      throw error
    }
    do throws(SecretError) { try barrier() } catch { return (.unconfirmed(error), self) }
    // The change is committed. A second copy protects it from damage to one slot. This copy needs no barrier: the first
    // barrier of the next commit comes before any slot is written again.
    do throws(SecretError) { try storage.write(appendix.slots[1].page, at: appendix.slots[1].offset) } catch {
      // The next commit writes this slot first.
    }
    return (.done, self)
  }
}

/// A file beside the vault that is being written.
final class LocalDraft: MediumDraft {
  private let location: StorageLocation
  private let new: NewFile
  private let file: StorageFile
  private var hasTemporaryName = true
  /// What is known of the file that is replaced, or `nil` for a new vault.
  private let former: FileFacts?

  /// Removes the temporary files that interrupted processes left, and creates the file under a temporary name.
  ///
  /// The file is locked from the start. A process that finds it in the vault's place cannot change it before its writer
  /// has finished.
  init(
    at location: StorageLocation, _ environment: VaultEnvironment, replacing former: FileFacts? = nil
  ) throws(SecretError) {
    (self.location, self.former) = (location, former)
    location.removeAbandoned(of: environment.user)
    new = try location.createNew(environment.randomness)
    file = StorageFile(new.file, path: location.path)
  }

  deinit { if hasTemporaryName { new.abandon() } }

  func write(_ bytes: [UInt8], at offset: Int) throws(SecretError) { try file.write(bytes, at: offset) }

  func publish() throws(SecretError) -> Publication {
    if let former {
      // Others may read the new file only if everybody could read the old one: its group may be another one.
      let readers = former.now.status.mode & 0o044
      try file.setMode(0o600 | (readers & 0o004 == 0 ? 0 : readers))
    }
    try location.put(new, replacing: former != nil)
    hasTemporaryName = false
    do throws(SecretError) { try location.synchronize() } catch {
      if former != nil { return .unconfirmed(error) }
      // No caller knows of the new vault yet, so it is removed.
      location.remove()
      throw error
    }
    return .done
  }
}
