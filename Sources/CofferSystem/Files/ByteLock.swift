internal import CLinux
internal import CofferLibc

/// Locks on single bytes of a file, which hold between threads and between processes.
package enum ByteLock {
  /// Takes the lock of the byte at `offset` of the file at `path`, which is created with mode 0600. Returns `nil` if
  /// another descriptor has the lock. The lock ends with the returned descriptor, and with the process. Throws the
  /// `errno` of open(2) or fcntl(2); `ELOOP` for a link.
  package static func tryLock(_ path: String, offset: Int64) throws(FileSystemError) -> Descriptor? {
    while true {
      let file = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
      if coffer_lock_byte(file.number, offset) != 0 {
        if errno == EAGAIN || errno == EACCES { return nil }
        if errno == EINTR { continue }
        throw FileSystemError(errno)
      }
      // Another program may have removed the file after it was opened. Others would then lock another file.
      let locked = try file.status()
      if FileStatus(of: path, followingLink: false)?.isSameFile(as: locked) == true { return file }
    }
  }
}
