internal import CofferLibc

/// A private directory, held by its descriptor and locked until the last reference is released. Another directory that
/// takes its name later is not changed.
package final class PrivateTree {
  package let path: String
  private let name: String
  private let (place, directory): (LinuxDirectory, LinuxDirectory)
  private let status: FileStatus

  /// Creates the directory in `path`. Throws the `errno`, and `EACCES` unless `path` belongs to this user or root, and
  /// nobody else can replace its entries.
  package init(in path: String, prefix: String) throws(FileSystemError) {
    place = LinuxDirectory(try Descriptor(opening: path, O_RDONLY | O_DIRECTORY))
    let around = try place.status(of: ".")
    guard around.owner == geteuid() || FileStatus.isRoot(around.owner),
      around.mode & UInt32(S_ISVTX) != 0 || around.mode & 0o022 == 0
    else { throw FileSystemError(EACCES) }
    name = prefix + String(UInt64.random(in: .min ... .max), radix: 16)
    self.path = "\(path)/\(name)"
    if mkdirat(place.descriptor.number, name, 0o700) != 0 { throw FileSystemError(errno) }
    directory = try place.directory(name)
    status = try directory.status(of: ".")
    flock(directory.descriptor.number, LOCK_EX | LOCK_NB)  // nobody else can have the lock
  }

  /// Overwrites and removes every file below the directory, and then the directory. The files `first` are removed even
  /// if the directory cannot be listed. Follows no link, and leaves mount points. May be called again. Throws the
  /// `errno` if the directory cannot be removed, and `ESTALE` if something else has its name.
  package func wipe(first: [String]) throws(FileSystemError) {
    var directories: [String] = []
    first.forEach { remove(Array($0.utf8), from: directory, &directories) }
    removeAll(from: directory, &directories)
    // Removes one directory after another at the top, so that a deep tree needs neither many descriptors nor a deep
    // stack.
    while let name = directories.popLast() {
      do throws(FileSystemError) { removeAll(from: try directory.directory(name), &directories) } catch {}
      unlinkat(directory.descriptor.number, name, AT_REMOVEDIR)
    }
    do throws(FileSystemError) {
      guard try place.status(of: name).isSameFile(as: status) else { throw FileSystemError(ESTALE) }
      if unlinkat(place.descriptor.number, name, AT_REMOVEDIR) != 0 { throw FileSystemError(errno) }
    } catch  where error.number == ENOENT {}
  }

  private func removeAll(from below: LinuxDirectory, _ directories: inout [String]) {
    do throws(FileSystemError) {
      // An entry can be moved only out of a writable directory.
      if try below.status(of: ".").mode & 0o700 != 0o700 { fchmod(below.descriptor.number, 0o700) }
      for name in try Path.names(in: below.reopened()) {
        remove(name, from: below, &directories)
      }
    } catch {}  // if an entry stays, so does the directory
  }

  /// Moves an entry to the top under a new name, and removes it there. The new name of a directory is added to
  /// `directories` instead. The old name need not be UTF-8. A mount point cannot be moved, even within one file system.
  private func remove(_ name: [UInt8], from below: LinuxDirectory, _ directories: inout [String]) {
    let moved = String(UInt64.random(in: .min ... .max), radix: 16)
    do throws(FileSystemError) {
      let old = (name + [0]).map(CChar.init(bitPattern:))
      let (from, top) = (below.descriptor.number, directory.descriptor.number)
      if renameat(from, old, top, moved) != 0 {
        // A directory that is not writable cannot be moved.
        let entry = errno == EACCES ? openat(from, old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1
        if entry < 0 { return }
        fchmod(entry, 0o700)
        close(entry)
        if renameat(from, old, top, moved) != 0 { return }
      }
      let found = try directory.status(of: moved)
      if found.isRegular { overwrite(moved, found, in: directory) }
      do throws(FileSystemError) { try directory.remove(moved) } catch  where error.number == EISDIR {
        directories.append(moved)
      }
    } catch {}
  }

  private func overwrite(_ name: String, _ found: FileStatus, in directory: LinuxDirectory) {
    do throws(FileSystemError) {
      if found.mode & 0o200 == 0 {
        let file = try directory.open(name, writable: false) as? LinuxFile
        if try file?.status().isSameFile(as: found) == true { try file?.setMode(0o600) }
      }
      guard let file = try directory.open(name, writable: true) as? LinuxFile,
        try file.status().isSameFile(as: found)
      else { return }
      let zeros = [UInt8](repeating: 0, count: 65_536)
      // Overwrites only the parts with data, so that the holes of a sparse file do not use memory. See lseek(2).
      let (data, hole): (Int32, Int32) = (3, 4)  // glibc declares them only for _GNU_SOURCE
      var offset = lseek(file.descriptor.number, 0, data)
      // For a file without data, the error is ENXIO. After another error, the whole file is overwritten.
      if offset < 0 && errno != ENXIO { offset = 0 }
      while offset >= 0 && offset < found.size {
        let next = lseek(file.descriptor.number, offset, hole)
        let end = next > offset ? min(next, found.size) : found.size
        for start in stride(from: offset, to: end, by: zeros.count) {
          try file.writeAll(zeros.span.extracting(first: min(zeros.count, end - start)), at: start)
        }
        offset = lseek(file.descriptor.number, end, data)
      }
    } catch {}  // a file that cannot be overwritten is only removed
  }
}
