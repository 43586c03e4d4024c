internal import CLinux
internal import CofferLibc

/// An open file descriptor, closed when the last reference to it is released.
package final class Descriptor: Sendable {
  package let number: Int32

  /// Takes over a descriptor that a system call has just returned. Throws the `errno` of that call if it failed.
  ///
  /// In a program whose standard streams are closed, a new descriptor can be one of those three, and everything that is
  /// printed would go into the file. Such a descriptor is moved above them.
  package init(opened result: Int32) throws(FileSystemError) {
    if result == -1 { throw FileSystemError(errno) }
    if result > STDERR_FILENO {
      number = result
      return
    }
    let moved = fcntl(result, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
    let failure = errno
    close(result)
    if moved == -1 { throw FileSystemError(failure) }
    number = moved
  }

  /// Opens a file or directory with `flags` and `O_CLOEXEC`. A relative path begins in `directory`, or else in the
  /// working directory. A file that is created has `mode`. Throws the `errno` of openat(2).
  package convenience init(
    opening path: String, in directory: Descriptor? = nil, _ flags: Int32, mode: UInt32 = 0
  ) throws(FileSystemError) {
    try self.init(opened: coffer_openat(directory?.number ?? AT_FDCWD, path, flags | O_CLOEXEC, mode))
  }

  deinit { close(number) }

  /// A new pipe, both ends of which are closed when a program is executed. Throws the `errno` of pipe(2).
  package static func pipe() throws(FileSystemError) -> (reading: Descriptor, writing: Descriptor) {
    var ends: [Int32] = [-1, -1]
    if coffer_pipe(&ends) != 0 { throw FileSystemError(errno) }
    return (try Descriptor(opened: ends[0]), try Descriptor(opened: ends[1]))
  }
}
