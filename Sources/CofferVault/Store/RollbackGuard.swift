internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

/// Refuses a vault that has gone back in time: a state older than the newest one seen, by this process or,
/// with a watermark, by an earlier one of the same user.
struct RollbackGuard {
  private let directory: String?
  private let fileSystem: any FileSystem
  /// The vault that ``newest`` belongs to.
  private var vault: Bytes16?
  private(set) var newest: Checkpoint?
  private var watermark: Watermark?

  /// `directory` is where watermarks are kept. `nil`: only this process's memory notices a rollback.
  init(directory: String?, fileSystem: any FileSystem) {
    self.directory = directory
    self.fileSystem = fileSystem
  }

  /// Admits a file that was just opened. Throws `.rolledBack` if it is older than the newest state seen.
  mutating func admit(_ opened: UnlockedVault) throws(SecretError) {
    loadWatermark(of: opened)
    let found = opened.state.checkpoint
    if newest == nil, let (seen, isAuthentic) = watermark?.checkpoint(opened.keys),
      isAuthentic || found.sequence < seen.sequence
    {
      newest = seen
    }
    let before = newest
    try check(opened)
    if before != found, !hasStored(found, opened.keys) { store(opened) }
  }

  /// Admits the current state of a file that was admitted before.
  mutating func check(_ opened: UnlockedVault) throws(SecretError) {
    let found = opened.state.checkpoint
    if let newest, found.contradicts(newest) {
      throw .rolledBack(path: opened.file.path, seen: newest, found: found)
    }
    newest = found
  }

  /// Remembers a state that this process wrote and that is on the disk.
  mutating func advance(to checkpoint: Checkpoint, _ keys: DerivedKeys) {
    newest = checkpoint
    watermark?.store(checkpoint, keys)
  }

  /// Takes the state of `opened` for the newest, even if a newer one was seen.
  mutating func accept(_ opened: UnlockedVault) {
    loadWatermark(of: opened)
    newest = opened.state.checkpoint
    store(opened)
  }

  private mutating func loadWatermark(of opened: UnlockedVault) {
    // Another vault at the same path has its own history.
    if vault != opened.file.header.vaultID { (newest, watermark) = (nil, nil) }
    vault = opened.file.header.vaultID
    if watermark == nil, let directory {
      watermark = Watermark(in: directory, of: opened.file, fileSystem: fileSystem)
    }
  }

  private func hasStored(_ found: Checkpoint, _ keys: DerivedKeys) -> Bool {
    guard let (stored, isAuthentic) = watermark?.checkpoint(keys) else { return false }
    return isAuthentic && stored.sequence >= found.sequence
  }

  /// Stores a state that was read. Its writer may have been killed before the last barriers, so they are
  /// repeated first: only what is on the disk may be remembered.
  private func store(_ opened: UnlockedVault) {
    guard let watermark else { return }
    do throws(SecretError) {
      try opened.file.storage.synchronizeData()
      try opened.file.synchronizeName()
      watermark.store(opened.state.checkpoint, opened.keys)
    } catch {
      // The watermark keeps its earlier checkpoint.
    }
  }
}
