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

/// Names a process that has locked the whole file, as “12 of user 1000”. Returns `nil` if the system does not tell: the
/// process may be in another container, and some file systems have another device number there.
package func holderOfLock(onFile path: String) -> String? {
  guard let file = FileStatus(of: path), let locks = beginning(ofFile: "/proc/locks", count: 1 << 16) else {
    return nil
  }
  let (major, minor) = (file.device >> 8 & 0xFFF, file.device & 0xFF | file.device >> 12 & 0xFFF00)
  let place = [major, minor].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: ":")
  for line in String(decoding: locks, as: UTF8.self).split(separator: "\n") {
    // Such as “1: FLOCK  ADVISORY  WRITE 12 fe:00:34 0 EOF”.
    let fields = line.split(separator: " ")
    guard fields.count > 5, fields[1] == "FLOCK", fields[5] == "\(place):\(file.inode)",
      let owner = FileStatus(of: "/proc/\(fields[4])")?.owner
    else { continue }
    return "\(fields[4]) of user \(owner)"
  }
  return nil
}
