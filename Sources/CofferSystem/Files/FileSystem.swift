internal import CofferLibc

/// The calls on files that a vault makes. A test can replace the disk here.
///
/// Each call of a directory or a file is one system call without a retry, and throws its `errno`. The layer above
/// repeats interrupted calls and completes short ones. Thread-safe.
package protocol FileSystem: Sendable {
  /// Resolves every link in `path`; the last component only if `followingLink`. The last component need not exist.
  ///
  /// The result is a name in an open directory, so links that change later have no effect. Throws `ENOENT` or `ENOTDIR`
  /// if a directory is missing, `EISDIR` if the path ends in a directory without a name, such as `..`, and `EACCES` for
  /// a link that is refused: see ``FileSystemError/refusedLink``.
  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location

  /// The status of the file that `path` leads to now. Follows every link, even those that ``locate(_:followingLink:)``
  /// refuses: use it only to compare with a file that was located. Throws `ENOENT` or `ENOTDIR` if there is none.
  func status(ofPath path: String) throws(FileSystemError) -> FileStatus
}

extension FileSystem {
  package func status(ofPath path: String) throws(FileSystemError) -> FileStatus {
    try statusOfLocated(path)
  }

  func statusOfLocated(_ path: String) throws(FileSystemError) -> FileStatus {
    let location = try locate(path, followingLink: true)
    return try location.directory.status(of: location.name)
  }
}

/// A name in an open directory.
package struct Location: Sendable {
  package let directory: any Directory
  package let name: String
  /// The path without links, as it was resolved.
  package let path: String
  /// The path with the links of its directory resolved. Its last name may be a link that was followed.
  package let linkPath: String

  package init(directory: any Directory, name: String, path: String, linkPath: String? = nil) {
    (self.directory, self.name, self.path) = (directory, name, path)
    self.linkPath = linkPath ?? path
  }
}

package protocol Directory: Sendable {
  /// Opens a file. Does not wait, whatever kind of file it is. Throws `ELOOP` for a link, and `ENOENT`.
  func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File
  /// Creates a file of mode 0600. Throws `EEXIST` if the name is taken.
  func create(_ name: String) throws(FileSystemError) -> any File
  /// The status of the file with the name, without following a link. `.` is the directory itself.
  func status(of name: String) throws(FileSystemError) -> FileStatus
  /// Renames a file. Throws `EEXIST` without `replacing` if `newName` is taken.
  func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError)
  /// Removes the name of a file. Throws `EISDIR` for a directory.
  func remove(_ name: String) throws(FileSystemError)
  /// The names in the directory without `.` and `..`, in no order, with invalid UTF-8 repaired.
  func names() throws(FileSystemError) -> [String]
  /// Waits until the directory's entries are on the disk.
  func synchronize() throws(FileSystemError)
  /// Calls `onChange` after each change of the file `name`, until the result is released. The directory is watched and
  /// not the file, because a rewrite replaces the file. `onChange` must not block.
  func watch(_ name: String, _ onChange: @escaping @Sendable () -> Void) throws(FileSystemError) -> any DirectoryWatch
}

/// An open file. Releasing the last reference closes it and releases its lock.
package protocol File: AnyObject, Sendable {
  func status() throws(FileSystemError) -> FileStatus
  /// Reads at most `buffer.count` bytes at `offset`; 0 at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int
  /// Writes some of `bytes` at `offset`. Returns how many.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int
  func truncate(to size: Int) throws(FileSystemError)
  func setMode(_ mode: UInt32) throws(FileSystemError)
  /// Waits until the file's data and the metadata needed to read it are on the disk.
  func synchronizeData() throws(FileSystemError)
  /// Waits until the file's data and all of its metadata are on the disk.
  func synchronize() throws(FileSystemError)
  /// Takes the file's advisory lock. Returns `false` if another open file has it.
  func tryLock(exclusive: Bool) throws(FileSystemError) -> Bool
  func unlock() throws(FileSystemError)
}

extension File {
  /// Writes all of `bytes` at `offset`, with as many calls as needed. Throws the `errno` of a call, or `EIO` if one
  /// writes nothing.
  package func writeAll(_ bytes: Span<UInt8>, at offset: Int) throws(FileSystemError) {
    try bytes.withUnsafeBytes { bytes throws(FileSystemError) in
      var written = 0
      while written < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count = try uninterrupted { () throws(FileSystemError) in try write(rest, at: offset + written) }
        if count == 0 { throw FileSystemError(EIO) }
        written += count
      }
    }
  }
}

/// A watch that is in force until it is released.
package protocol DirectoryWatch: AnyObject, Sendable {
  var isAlive: Bool { get }
}

package struct FileStatus: Hashable, Sendable {
  package var device: UInt64
  package var inode: UInt64
  package var size: Int
  package var isRegular: Bool
  package var isLink = false
  /// Permission bits.
  package var mode: UInt32
  package var owner: UInt32
  /// The number of names that the file has.
  package var links: Int

  package init(device: UInt64, inode: UInt64, size: Int, isRegular: Bool, mode: UInt32, owner: UInt32, links: Int) {
    (self.device, self.inode, self.size, self.isRegular) = (device, inode, size, isRegular)
    (self.mode, self.owner, self.links) = (mode, owner, links)
  }

  package func isSameFile(as other: FileStatus) -> Bool {
    device == other.device && inode == other.inode
  }
}

/// Repeats a call that a signal interrupts, which throws `EINTR`. Throws every other error of the call.
package func uninterrupted<R>(_ call: () throws(FileSystemError) -> R) throws(FileSystemError) -> R {
  while true {
    do throws(FileSystemError) { return try call() } catch  where error.number == EINTR {}
  }
}
