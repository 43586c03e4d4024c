internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Glibc

// The one layer between the vault and the raw calls. It repeats calls that a signal interrupted, completes
// short reads and writes, and turns failures into errors about the vault's path.

/// Makes a call, and throws its failure as an error about `path`. `action` is a verb for the message.
private func perform<R>(
  _ action: String, path: String, _ call: () throws(FileSystemError) -> R
) throws(SecretError) -> R {
  do throws(FileSystemError) { return try uninterrupted(call) } catch {
    throw .io(error, action, path: path)
  }
}

/// An open file of a vault.
struct StorageFile: Sendable {
  private let file: any File
  let path: String

  /// `path` is for messages.
  init(_ file: any File, path: String) { (self.file, self.path) = (file, path) }

  func status() throws(SecretError) -> FileStatus { try perform("read", path: path, file.status) }

  /// Reads `count` bytes at `offset`. Throws `.tampered` if the file ends before them.
  func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    let bytes = try readSome(count, at: offset)
    guard bytes.count == count else { throw .tampered("the file is cut short") }
    return bytes
  }

  /// Reads `count` bytes at `offset`, or fewer at the end of the file.
  func readSome(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    var failure: SecretError?
    var filled = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let buffer = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
      do throws(SecretError) {
        while filled < count {
          let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
          let read = try perform("read", path: path) { () throws(FileSystemError) in
            try file.read(into: rest, at: offset + filled)
          }
          if read == 0 { break }
          filled += read
        }
      } catch { failure = error }
      initialized = filled
    }
    if let failure { throw failure }
    return bytes
  }

  /// Writes all of `bytes` at `offset`.
  func write(_ bytes: [UInt8], at offset: Int) throws(SecretError) {
    try perform("write", path: path) { () throws(FileSystemError) in
      try file.writeAll(bytes.span, at: offset)
    }
  }

  func truncate(to size: Int) throws(SecretError) {
    try perform("write", path: path) { () throws(FileSystemError) in try file.truncate(to: size) }
  }

  func setMode(_ mode: UInt32) throws(SecretError) {
    try perform("write", path: path) { () throws(FileSystemError) in try file.setMode(mode) }
  }

  /// Waits until the file's data is on the disk.
  func synchronizeData() throws(SecretError) { try perform("write", path: path, file.synchronizeData) }

  /// Takes the advisory lock. Returns `false` if another process or another open file has it.
  func tryLock(exclusive: Bool) throws(SecretError) -> Bool {
    try perform("lock", path: path) { () throws(FileSystemError) in try file.tryLock(exclusive: exclusive) }
  }

  func unlock() throws(SecretError) { try perform("unlock", path: path, file.unlock) }
}

/// The place of a vault: a name in an open directory.
struct StorageLocation: Sendable {
  private let location: Location
  private let fileSystem: any FileSystem
  /// The path as the user gave it, for messages.
  let path: String
  /// The path from the root on, because the working directory may change.
  private let fullPath: String

  /// Resolves the links in `path`, whose last component need not exist. `action` is a verb for the message of
  /// an error.
  init(
    _ path: String, in fileSystem: any FileSystem, followingLink: Bool = true, to action: String = "open"
  ) throws(SecretError) {
    (self.path, self.fileSystem, fullPath) = (path, fileSystem, fileSystem.absolute(path))
    location = try perform(action, path: path) { () throws(FileSystemError) in
      try fileSystem.locate(path, followingLink: followingLink)
    }
  }

  /// The location of another name in the same open directory, with the same path for messages.
  init(named name: String, beside other: StorageLocation, path: String) {
    self.path = path
    (fileSystem, fullPath) = (other.fileSystem, other.fullPath)
    location = Location(
      directory: other.location.directory, name: Path.sibling(of: other.location.name, name),
      path: Path.sibling(of: other.location.path, name))
  }

  /// The name in its directory.
  var name: String { location.name }
  /// The path without links.
  var resolvedPath: String { location.path }
  /// The path without links in its directory.
  var linkPath: String { location.linkPath }

  /// Opens the file for writing, or for reading only if the system does not permit writing.
  func open() throws(SecretError) -> (file: StorageFile, isWritable: Bool) {
    func open(writable: Bool) throws(FileSystemError) -> any File {
      try location.directory.open(location.name, writable: writable)
    }
    let (file, isWritable) = try perform("open", path: path) { () throws(FileSystemError) in
      do throws(FileSystemError) { return (try open(writable: true), true) } catch {
        guard [EACCES, EPERM, EROFS].contains(error.number) else { throw error }
        return (try open(writable: false), false)
      }
    }
    return (StorageFile(file, path: path), isWritable)
  }

  /// The status of the file that has the name now.
  func status() throws(SecretError) -> FileStatus {
    do throws(FileSystemError) { return try location.directory.status(of: name) } catch {
      throw .io(error, "open", path: path)
    }
  }

  /// The status of the file that the path leads to now, which may be in another directory, or `nil` if there is none.
  func statusOfPath() throws(SecretError) -> FileStatus? {
    do throws(FileSystemError) {
      return try uninterrupted { () throws(FileSystemError) in try fileSystem.status(ofPath: fullPath) }
    } catch {
      if [ENOENT, ENOTDIR].contains(error.number) { return nil }
      throw .io(error, "open", path: path)
    }
  }

  /// The status of the directory.
  func directoryStatus() throws(SecretError) -> FileStatus {
    try perform("open", path: path) { () throws(FileSystemError) in
      try location.directory.status(of: ".")
    }
  }

  /// Throws `.alreadyExists` if there is anything with the name.
  func requireVacant() throws(SecretError) {
    do throws(FileSystemError) { _ = try location.directory.status(of: name) } catch {
      if error.number == ENOENT { return }
      throw .io(error, "make", path: path)
    }
    throw .io(FileSystemError(EEXIST), "make", path: path)
  }

  // MARK: New files

  /// Creates a locked file that ``put(_:replacing:)`` moves here.
  func createNew(_ randomness: any Randomness) throws(SecretError) -> NewFile {
    try perform("write", path: path) { () throws(FileSystemError) in
      try NewFile(for: name, in: location.directory) {
        randomness.array(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      }
    }
  }

  /// Removes what interrupted processes of `user` left of new files.
  func removeAbandoned(of user: UInt32) {
    NewFile.removeAbandoned(for: name, in: location.directory, user: user)
  }

  /// Waits until the file is on the disk, and moves it here. Throws `.alreadyExists` without `replacing` if the name is
  /// taken, and `.denied` if the file here is a mount point.
  func put(_ file: NewFile, replacing: Bool) throws(SecretError) {
    do throws(FileSystemError) { try file.takeName(replacing: replacing) } catch {
      throw error.number == EBUSY ? .mountedFile(path: path) : .io(error, "write", path: path)
    }
  }

  /// Removes the file. A failure is not an error: the file is sealed like every other.
  func remove() {
    do throws(FileSystemError) { try location.directory.remove(name) } catch {}
  }

  /// Waits until the entries of the directory are on the disk.
  func synchronize() throws(SecretError) {
    try perform("write", path: path, location.directory.synchronize)
  }

  /// Calls `onChange` after each change of the file, until the result is released.
  func watch(_ onChange: @escaping @Sendable () -> Void) throws(SecretError) -> any DirectoryWatch {
    try perform("watch", path: path) { () throws(FileSystemError) in
      try location.directory.watch(name, onChange)
    }
  }
}
