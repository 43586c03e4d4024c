internal import CofferCore
internal import CofferSystem
internal import CofferLibc

/// The directory of the known-vault records.
enum KnownVaultDirectory {
  /// Opens the directory at `path` for the records about the vault at `vault`. Returns `nil` if there is no such
  /// directory. Throws `.unverifiable` if it cannot be opened, or if another user can write to it.
  static func open(
    _ path: String, about vault: String, _ environment: VaultEnvironment
  ) throws(SecretError) -> StorageLocation? {
    func open() throws(SecretError) -> (StorageLocation, FileStatus) {
      let location = try StorageLocation("\(path)/any", in: environment.fileSystem, followingLink: false)
      return (location, try location.status(of: "."))
    }
    let (location, status): (StorageLocation, FileStatus)
    do throws(SecretError) { (location, status) = try open() } catch {
      if error.code == .vaultNotFound, isAbsent(path, environment.fileSystem) { return nil }
      // Another process may have made the directory after the first attempt.
      do throws(SecretError) { (location, status) = try open() } catch {
        if let unread = SecretError.unread(error, vault: vault, path) { throw unread }
        throw .unusableRecords(vault: vault, "the directory of the records, \(path), cannot be opened")
      }
    }
    guard status.owner == environment.user else {
      throw .unusableRecords(vault: vault, "the directory of the records, \(path), belongs to another user")
    }
    guard status.mode & 0o022 == 0 else {
      throw .unusableRecords(vault: vault, "other users can write to the directory of the records, \(path)")
    }
    return location
  }

  /// Whether the directory does not exist. `false` if a link above it leads nowhere.
  private static func isAbsent(_ path: String, _ fileSystem: any FileSystem) -> Bool {
    var isLocated = false
    do throws(FileSystemError) {
      let location = try fileSystem.locate(path, followingLink: false)
      isLocated = true
      _ = try location.directory.status(of: location.name)
      return false
    } catch {
      guard error.number == ENOENT else { return false }
    }
    let parent = Path.parent(of: path)
    return isLocated || parent != path && isAbsent(parent, fileSystem)
  }
}
