internal import CLinux
internal import CofferLibc
internal import Synchronization

/// The real disk.
package struct LinuxFileSystem: FileSystem {
  package init() {}

  package func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let place = try PathWalk.place(of: path, followingLink: followingLink)
    return Location(
      directory: LinuxDirectory(place.directory), name: place.name, path: place.path,
      linkPath: place.linkPath)
  }

  package func status(ofPath path: String) throws(FileSystemError) -> FileStatus {
    var status = stat()
    if stat(path, &status) == 0 { return FileStatus(status) }
    // The kernel takes only paths of less than 4,096 bytes. A walk takes longer ones.
    if errno == ENAMETOOLONG { return try statusOfLocated(path) }
    throw FileSystemError(errno)
  }
}

/// Throws `errno` if a system call returned −1.
@discardableResult
private func check<I: SignedInteger>(_ result: I) throws(FileSystemError) -> I {
  if result == -1 { throw FileSystemError(errno) }
  return result
}

final class LinuxDirectory: Directory {
  /// An `O_PATH` descriptor, which can only be used to find files, is enough.
  let descriptor: Descriptor
  /// The descriptor of ``synchronize()``.
  private let readable = Mutex<Descriptor?>(nil)

  init(_ descriptor: Descriptor) { self.descriptor = descriptor }

  /// A new readable descriptor, positioned at the first entry.
  func reopened() throws(FileSystemError) -> Descriptor {
    try Descriptor(opening: ".", in: descriptor, O_RDONLY | O_DIRECTORY)
  }

  /// Opens the descriptor of ``synchronize()`` before a file gets its name: a failure after that would be too late.
  @discardableResult
  func prepareToSynchronize() throws(FileSystemError) -> Descriptor {
    try readable.withLock { readable throws(FileSystemError) in
      if let readable { return readable }
      let descriptor = try reopened()
      readable = descriptor
      return descriptor
    }
  }

  func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File {
    // O_NONBLOCK: a FIFO in the vault's place must not block the caller. Regular files ignore it.
    let flags = (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    return try LinuxFile(Descriptor(opening: name, in: descriptor, flags))
  }

  func create(_ name: String) throws(FileSystemError) -> any File {
    try prepareToSynchronize()
    let flags = O_RDWR | O_CREAT | O_EXCL
    let file = try LinuxFile(Descriptor(opening: name, in: descriptor, flags, mode: 0o600))
    // The umask may have cleared bits, and a default ACL of the directory may have set some.
    do throws(FileSystemError) { try file.setMode(0o600) } catch {
      try remove(name)
      throw error
    }
    return file
  }

  /// Gives a name to a file. Throws `EEXIST` if the name is taken.
  func link(_ file: LinuxFile, to name: String) throws(FileSystemError) {
    try prepareToSynchronize()
    if coffer_link_descriptor(file.descriptor.number, descriptor.number, name) == 0 { return }
    if errno == EEXIST { throw FileSystemError(EEXIST) }
    try check(coffer_link_path(file.descriptor.path, descriptor.number, name))
  }

  func status(of name: String) throws(FileSystemError) -> FileStatus {
    try status(of: name, followingLink: false)
  }

  func status(of name: String, followingLink: Bool) throws(FileSystemError) -> FileStatus {
    var status = stat()
    try check(fstatat(descriptor.number, name, &status, followingLink ? 0 : AT_SYMLINK_NOFOLLOW))
    return FileStatus(status)
  }

  func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError) {
    if replacing {
      try check(renameat(descriptor.number, name, descriptor.number, newName))
      return
    }
    if coffer_rename_exclusively(descriptor.number, name, newName) == 0 { return }
    // Some file systems do not support flags. A link fails as well if the name is taken.
    guard errno == EINVAL || errno == ENOSYS else { throw FileSystemError(errno) }
    if linkat(descriptor.number, name, descriptor.number, newName, 0) != 0 {
      guard [EPERM, EOPNOTSUPP, ENOSYS].contains(errno) else { throw FileSystemError(errno) }
      // exFAT has no links. An empty file takes the name, so that no existing file is replaced.
      _ = try create(newName)
      do throws(FileSystemError) { return try rename(name, to: newName, replacing: true) } catch {
        try remove(newName)
        throw error
      }
    }
    // Another process may have removed the old name, because it took the file for an abandoned one.
    do throws(FileSystemError) { try remove(name) } catch  where error.number == ENOENT {}
  }

  func remove(_ name: String) throws(FileSystemError) { try check(unlinkat(descriptor.number, name, 0)) }

  /// Opens a directory in this one. Throws `ENOTDIR` for a link and for what is not a directory.
  func directory(_ name: String) throws(FileSystemError) -> LinuxDirectory {
    LinuxDirectory(try Descriptor(opening: name, in: descriptor, O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
  }

  func names() throws(FileSystemError) -> [String] {
    try Path.names(in: reopened()).map { String(decoding: $0, as: UTF8.self) }
  }

  func synchronize() throws(FileSystemError) {
    let directory = try prepareToSynchronize()
    try check(withExtendedLifetime(directory) { fsync(directory.number) })
  }

  func watch(_ name: String, _ onChange: @escaping @Sendable () -> Void) throws(FileSystemError) -> any DirectoryWatch {
    try WatchThread.shared.watch(name, in: descriptor, onChange)
  }
}

final class LinuxFile: File {
  let descriptor: Descriptor
  init(_ descriptor: Descriptor) { self.descriptor = descriptor }

  func setMode(_ mode: mode_t) throws(FileSystemError) { try check(fchmod(descriptor.number, mode)) }

  func status() throws(FileSystemError) -> FileStatus { try descriptor.status() }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int {
    try check(pread(descriptor.number, buffer.baseAddress, buffer.count, offset))
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int {
    try check(pwrite(descriptor.number, bytes.baseAddress, bytes.count, offset))
  }

  func truncate(to size: Int) throws(FileSystemError) { try check(ftruncate(descriptor.number, size)) }

  func synchronizeData() throws(FileSystemError) { try check(fdatasync(descriptor.number)) }

  func synchronize() throws(FileSystemError) { try check(fsync(descriptor.number)) }

  func tryLock(exclusive: Bool) throws(FileSystemError) -> Bool {
    if flock(descriptor.number, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw FileSystemError(errno)
  }

  func unlock() throws(FileSystemError) { try check(flock(descriptor.number, LOCK_UN)) }
}

extension Descriptor {
  /// A path that leads to the open file, even if another file has its name by now.
  var path: String { "/proc/self/fd/\(number)" }

  /// The status of the open file. Throws the `errno` of fstat(2).
  package func status() throws(FileSystemError) -> FileStatus {
    var status = stat()
    try check(fstat(number, &status))
    return FileStatus(status)
  }
}

extension FileStatus {
  /// The status of the file that `path` leads to, or of the link itself. `nil` if it cannot be examined.
  package init?(of path: String, followingLink: Bool = true) {
    var status = stat()
    guard fstatat(AT_FDCWD, path, &status, followingLink ? 0 : AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
    self.init(status)
  }

  /// Whether the user is root. In a user namespace, files of the real root have the owner of `/`.
  static func isRoot(_ user: UInt32) -> Bool { user == 0 || user == FileStatus(of: "/")?.owner }

  init(_ status: stat) {
    self.init(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int(status.st_size),
      isRegular: status.st_mode & S_IFMT == S_IFREG, mode: status.st_mode & 0o7777, owner: status.st_uid,
      links: Int(status.st_nlink))
    isLink = status.st_mode & S_IFMT == S_IFLNK
  }
}
