internal import CofferCore
internal import CofferSystem
internal import Glibc

/// The directory of the known-vault records.
struct KnownVaultDirectory {
  let path: String
  private let environment: VaultEnvironment

  init(_ path: String, environment: VaultEnvironment) {
    self.path = path
    self.environment = environment
  }

  /// The place of the file `name`, for the record about the vault at `vault`. Returns `nil` if there is no
  /// such directory. Throws `.unverifiable` if it cannot be opened, or if another user can write to it.
  func location(of name: String, about vault: String) throws(SecretError) -> StorageLocation? {
    func open() throws(SecretError) -> (StorageLocation, FileStatus) {
      let location = try StorageLocation("\(path)/\(name)", in: environment.fileSystem, followingLink: false)
      return (location, try location.directoryStatus())
    }
    let (location, status): (StorageLocation, FileStatus)
    do throws(SecretError) { (location, status) = try open() } catch {
      if error.code == .vaultNotFound, isAbsent { return nil }
      // Another process may have made the directory after the first attempt.
      do throws(SecretError) { (location, status) = try open() } catch {
        throw .unusableRecords(vault: vault, "the directory of the records, \(path), cannot be opened")
      }
    }
    guard status.owner == environment.user else {
      throw .unusableRecords(
        vault: vault, "the directory of the records, \(path), belongs to another user")
    }
    guard status.mode & 0o022 == 0 else {
      throw .unusableRecords(
        vault: vault, "other users can write to the directory of the records, \(path)")
    }
    return location
  }

  /// Whether nothing has the directory's name, and no link that leads nowhere is above it.
  private var isAbsent: Bool {
    var path = path
    while true {
      var isLocated = false
      do throws(FileSystemError) {
        let location = try environment.fileSystem.locate(path, followingLink: false)
        isLocated = true
        _ = try location.directory.status(of: location.name)
        return false
      } catch {
        guard error.number == ENOENT else { return false }
      }
      let parent = Path.parent(of: path)
      if isLocated || parent == path { return isLocated }
      path = parent
    }
  }
}

extension VaultBackend {
  /// Whether the records in `directory` are about the vault with that id at `path`, or only at other paths. `nil` if there is no
  /// record of it. A record that cannot be read does not count.
  package static func isKnown(_ id: String, at path: String, in directory: String) -> Bool? {
    let own = KnownVaultFile.name(for: path)
    var names: [String] = []
    do throws(FileSystemError) { names = try Path.names(inDirectory: directory) } catch {
      return nil
    }
    var isElsewhere = false
    for name in names.sorted(by: { $0 == own && $1 != own }) {
      var bytes: [UInt8] = []
      do throws(SecretError) {
        let file = try PrivateFile.read("\(directory)/\(name)", as: "The record", limit: 65_536)
        bytes = file?.withBytes { bytes in bytes.indices.map { bytes[$0] } } ?? []
      } catch { continue }
      guard KnownVaultFile.vaults(in: bytes).contains(id) else { continue }
      if name == own { return true }
      isElsewhere = true
    }
    return isElsewhere ? false : nil
  }
}
