/// The few calls on files that a vault is made of, so that something else can stand in for the disk.
///
/// Each is one system call, without a retry: the loops above them are the same for every disk.
package protocol FileSystem: Sendable {
  /// Resolves every link in `path`, once. From then on the vault is a name in an open directory, and no
  /// link that is changed later leads it elsewhere. The last part need not exist.
  func locate(_ path: String) throws(FileSystemError) -> Location
}

/// A directory that is held open, and a name in it.
package struct Location: Sendable {
  package let directory: any Directory
  package let name: String
  /// The whole path without links, as it was when it was resolved.
  package let path: String
  package init(directory: any Directory, name: String, path: String) {
    self.path = path
    self.directory = directory
    self.name = name
  }
}

package protocol Directory: Sendable {
  /// Opens a file and follows no link. Never waits, whatever kind of file it is.
  func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File
  /// Makes a file of mode 0600 that was not there; `EEXIST` otherwise.
  func create(_ name: String) throws(FileSystemError) -> any File
  /// What the name stands for, without following a link.
  func status(of name: String) throws(FileSystemError) -> FileStatus
  /// Renames. Without `replacing`, `EEXIST` where `newName` is taken.
  func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError)
  func remove(_ name: String) throws(FileSystemError)
  /// Waits until the directory's entries are on the disk.
  func synchronize() throws(FileSystemError)
  /// Begins to watch for changes to the files in it.
  func watch() throws(FileSystemError) -> any DirectoryWatch
}

/// An open file; it is closed, and its lock let go, when the last reference to it is.
package protocol File: AnyObject, Sendable {
  func status() throws(FileSystemError) -> FileStatus
  /// Reads at most `buffer.count` bytes at `offset`; 0 at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int
  /// Writes at most all of `bytes` at `offset`, and tells how many.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int
  func truncate(to size: Int) throws(FileSystemError)
  /// Waits until the file's data, and what is needed to read it, is on the disk.
  func synchronizeData() throws(FileSystemError)
  /// Waits until all of the file is on the disk.
  func synchronize() throws(FileSystemError)
  /// Takes the file's advisory lock, or tells that someone else has it.
  func tryLock(exclusive: Bool) throws(FileSystemError) -> Bool
  func unlock() throws(FileSystemError)
}

package protocol DirectoryWatch: AnyObject, Sendable {
  /// Waits at most `seconds` for a change to a file called `name`. Whether there was one.
  func wait(for name: String, seconds: Double) throws(FileSystemError) -> Bool
}

package struct FileStatus: Hashable, Sendable {
  package var device: UInt64
  package var inode: UInt64
  package var size: Int
  package var isRegular: Bool
  /// Permission bits.
  package var mode: UInt32
  package var owner: UInt32

  package init(device: UInt64, inode: UInt64, size: Int, isRegular: Bool, mode: UInt32, owner: UInt32) {
    self.device = device
    self.inode = inode
    self.size = size
    self.isRegular = isRegular
    self.mode = mode
    self.owner = owner
  }

  package func isSameFile(as other: FileStatus) -> Bool {
    device == other.device && inode == other.inode
  }
}

/// A system call's failure.
package struct FileSystemError: Error, Hashable, Sendable {
  package let number: Int32
  package init(_ number: Int32) { self.number = number }
}
