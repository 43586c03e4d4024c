internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import CofferLibc

// The one layer between the vault and the raw calls. It repeats calls that a signal interrupted, completes short reads
// and writes, and turns failures into errors about the vault's path.

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

  func synchronizeData() throws(SecretError) { try perform("write", path: path, file.synchronizeData) }

  func tryLock(exclusive: Bool) throws(SecretError) -> Bool {
    try perform("lock", path: path) { () throws(FileSystemError) in try file.tryLock(exclusive: exclusive) }
  }

  func unlock() throws(SecretError) { try perform("unlock", path: path, file.unlock) }
}

/// The place of a vault: a name in an open directory.
struct StorageLocation: Sendable {
  private let location: Location
  /// The path as the user gave it, for messages.
  let path: String

  /// Resolves the links in `path`, whose last component need not exist. `action` is a verb for the message of an error.
  init(
    _ path: String, in fileSystem: any FileSystem, followingLink: Bool = true, to action: String = "open"
  ) throws(SecretError) {
    self.path = path
    location = try perform(action, path: path) { () throws(FileSystemError) in
      try fileSystem.locate(path, followingLink: followingLink)
    }
  }

  /// The location of another name in the same open directory, with the same path for messages.
  init(named name: String, beside other: StorageLocation, path: String) {
    self.path = path
    location = Location(
      directory: other.location.directory, name: Path.sibling(of: other.location.name, name),
      path: Path.sibling(of: other.location.path, name))
  }

  var resolvedPath: String { location.path }
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

  /// The status of the file that has the name now, or of `other` in the directory; `.` is the directory itself.
  func status(of other: String? = nil) throws(SecretError) -> FileStatus {
    try perform("open", path: path) { () throws(FileSystemError) in
      try location.directory.status(of: other ?? location.name)
    }
  }

  /// Throws `.alreadyExists` if there is anything with the name.
  func requireVacant() throws(SecretError) {
    do throws(FileSystemError) { _ = try location.directory.status(of: location.name) } catch {
      if error.number == ENOENT { return }
      throw .io(error, "make", path: path)
    }
    throw .io(FileSystemError(EEXIST), "make", path: path)
  }

  // MARK: New files

  /// Creates a locked file that ``put(_:replacing:)`` moves here.
  func createNew(_ randomness: any Randomness) throws(SecretError) -> NewFile {
    try perform("write", path: path) { () throws(FileSystemError) in
      try NewFile(for: location.name, in: location.directory) {
        randomness.array(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      }
    }
  }

  /// Removes the unfinished new files that interrupted processes of `user` left.
  func removeAbandoned(of user: UInt32) {
    NewFile.removeAbandoned(for: location.name, in: location.directory, user: user)
  }

  /// Waits until the file is on the disk, and moves it here. Throws `.alreadyExists` if the name is taken and
  /// `replacing` is `false`, and `.denied` if the file here is a mount point.
  func put(_ file: NewFile, replacing: Bool) throws(SecretError) {
    do throws(FileSystemError) { try file.takeName(replacing: replacing) } catch {
      throw error.number == EBUSY ? .mountedFile(path: path) : .io(error, "write", path: path)
    }
  }

  /// Removes the file. A failure is ignored, because the content of the file is sealed.
  func remove() {
    do throws(FileSystemError) { try location.directory.remove(location.name) } catch {}
  }

  func synchronize() throws(SecretError) {
    try perform("write", path: path, location.directory.synchronize)
  }

  func watch(_ onChange: @escaping @Sendable () -> Void) throws(SecretError) -> any DirectoryWatch {
    try perform("watch", path: path) { () throws(FileSystemError) in
      try location.directory.watch(location.name, onChange)
    }
  }
}
