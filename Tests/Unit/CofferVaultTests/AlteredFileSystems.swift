import CofferSystem
import Glibc
import Synchronization

/// A directory that passes every call on, unless a conforming type has its own method for it.
protocol PassingDirectory: Directory {
  var directory: any Directory { get }
}

extension PassingDirectory {
  func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File {
    try directory.open(name, writable: writable)
  }
  func create(_ name: String) throws(FileSystemError) -> any File { try directory.create(name) }
  func status(of name: String) throws(FileSystemError) -> FileStatus { try directory.status(of: name) }
  func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError) {
    try directory.rename(name, to: newName, replacing: replacing)
  }
  func remove(_ name: String) throws(FileSystemError) { try directory.remove(name) }
  func names() throws(FileSystemError) -> [String] { try directory.names() }
  func synchronize() throws(FileSystemError) { try directory.synchronize() }
  func watch(
    _ name: String, _ onChange: @escaping @Sendable () -> Void
  ) throws(FileSystemError) -> any DirectoryWatch { try directory.watch(name, onChange) }
}

/// The real disk behind a read-only mount.
struct ReadOnlyFileSystem: FileSystem {
  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
    return Location(
      directory: ReadOnlyDirectory(directory: location.directory), name: location.name, path: location.path)
  }

  struct ReadOnlyDirectory: PassingDirectory {
    let directory: any Directory
    func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File {
      if writable { throw FileSystemError(EROFS) }
      return try directory.open(name, writable: false)
    }
    func create(_ name: String) throws(FileSystemError) -> any File { throw FileSystemError(EROFS) }
    func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError) {
      throw FileSystemError(EROFS)
    }
    func remove(_ name: String) throws(FileSystemError) { throw FileSystemError(EROFS) }
    func synchronize() throws(FileSystemError) {}
  }
}

/// The real disk, with a directory that may not be entered.
struct RefusingFileSystem: FileSystem {
  let directory: String

  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    if path.hasPrefix(directory + "/") { throw FileSystemError(EACCES) }
    return try LinuxFileSystem().locate(path, followingLink: followingLink)
  }
}

/// The real disk. Records the length of the longest read.
final class MeasuredFileSystem: FileSystem {
  private let longest = Mutex(0)
  var longestRead: Int { longest.withLock { $0 } }

  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let altered = AlteredFileSystem(change: { _ in }) { [weak self] count in
      self?.longest.withLock { $0 = max($0, count) }
    }
    return try altered.locate(path, followingLink: followingLink)
  }
}

/// The real disk with other owners and modes.
struct AlteredFileSystem: FileSystem {
  let change: @Sendable (inout FileStatus) -> Void
  /// Receives the length of each read.
  var didRead: @Sendable (Int) -> Void = { _ in }

  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
    return Location(
      directory: AlteredDirectory(directory: location.directory, change: change, didRead: didRead),
      name: location.name, path: location.path)
  }

  struct AlteredDirectory: PassingDirectory {
    let directory: any Directory
    let change: @Sendable (inout FileStatus) -> Void
    let didRead: @Sendable (Int) -> Void
    func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File {
      AlteredFile(try directory.open(name, writable: writable), change, didRead)
    }
    func create(_ name: String) throws(FileSystemError) -> any File {
      AlteredFile(try directory.create(name), change, didRead)
    }
    func status(of name: String) throws(FileSystemError) -> FileStatus {
      var status = try directory.status(of: name)
      change(&status)
      return status
    }
  }

  final class AlteredFile: File {
    let file: any File
    let change: @Sendable (inout FileStatus) -> Void
    let didRead: @Sendable (Int) -> Void
    let willWrite: @Sendable () throws(FileSystemError) -> Void
    init(
      _ file: any File, _ change: @escaping @Sendable (inout FileStatus) -> Void,
      _ didRead: @escaping @Sendable (Int) -> Void,
      willWrite: @escaping @Sendable () throws(FileSystemError) -> Void = {}
    ) {
      (self.file, self.change, self.didRead, self.willWrite) = (file, change, didRead, willWrite)
    }
    func status() throws(FileSystemError) -> FileStatus {
      var status = try file.status()
      change(&status)
      return status
    }
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int {
      didRead(buffer.count)
      return try file.read(into: buffer, at: offset)
    }
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int {
      try willWrite()
      return try file.write(bytes, at: offset)
    }
    func truncate(to size: Int) throws(FileSystemError) { try file.truncate(to: size) }
    func setMode(_ mode: UInt32) throws(FileSystemError) { try file.setMode(mode) }
    func synchronizeData() throws(FileSystemError) { try file.synchronizeData() }
    func synchronize() throws(FileSystemError) { try file.synchronize() }
    func tryLock(exclusive: Bool) throws(FileSystemError) -> Bool { try file.tryLock(exclusive: exclusive) }
    func unlock() throws(FileSystemError) { try file.unlock() }
  }
}

/// The real disk, which notes at each rename whether the file is locked.
final class LockObservingFileSystem: FileSystem {
  let wasLocked = Mutex<[Bool]>([])

  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
    return Location(
      directory: ObservingDirectory(directory: location.directory, fileSystem: self), name: location.name,
      path: location.path)
  }

  private struct ObservingDirectory: PassingDirectory {
    let directory: any Directory
    let fileSystem: LockObservingFileSystem

    func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError) {
      // A shared lock is refused only while another process holds the exclusive one.
      let isFree = try directory.open(name, writable: true).tryLock(exclusive: false)
      fileSystem.wasLocked.withLock { $0.append(!isFree) }
      try directory.rename(name, to: newName, replacing: replacing)
    }
  }
}
