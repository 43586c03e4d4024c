internal import CLinux
package import CofferCore
internal import CofferLibc

/// Operations on paths, by their bytes.
package enum Path {
  /// The directory that `path` is in: `.` for a name without a slash, and `/` for a name in the root directory.
  package static func parent(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// The part of `path` after its last slash.
  package static func name(of path: String) -> Substring {
    path[(path.utf8.lastIndex(of: UInt8(ascii: "/")).map(path.utf8.index(after:)) ?? path.startIndex)...]
  }

  /// `path` with another name after its last slash.
  package static func sibling(of path: String, _ name: String) -> String {
    String(path[..<self.name(of: path).startIndex]) + name
  }

  /// The absolute form of `path`, for use after the working directory has changed. Links stay, even those by which a
  /// shell entered the working directory: `PWD` is used if it names that directory. Throws `.io` or `.denied` if the
  /// working directory cannot be read.
  package static func absolute(_ path: String) throws(SecretError) -> String {
    if path.utf8.first == UInt8(ascii: "/") { return path }
    if let named = getenv("PWD").map({ String(cString: $0) }), named.hasPrefix("/"), isSameFile(named, ".") {
      return named + "/" + path
    }
    guard let current = getcwd(nil, 0) else {
      throw .system(FileSystemError(errno), "The working directory cannot be read")
    }
    defer { free(current) }
    return String(cString: current) + "/" + path
  }

  /// The path of the program that runs, without links. Empty if `/proc` is not mounted.
  package static var ofThisProgram: String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Whether something is at `path`. A link that leads nowhere does not count. Throws if that cannot be determined.
  package static func exists(_ path: String) throws(SecretError) -> Bool {
    var status = stat()
    if stat(path, &status) == 0 { return true }
    let code = errno
    if code == ENOENT || code == ENOTDIR { return false }
    throw .system(FileSystemError(code), "\(path) cannot be examined")
  }

  /// Whether both paths lead to the same file. `false` if either cannot be examined.
  package static func isSameFile(_ left: String, _ right: String) -> Bool {
    guard let first = FileStatus(of: left), let second = FileStatus(of: right) else { return false }
    return first.isSameFile(as: second)
  }

  /// The names in a directory without `.` and `..`, in no order, with invalid UTF-8 repaired. Throws the `errno` if the
  /// directory cannot be opened.
  package static func names(inDirectory path: String) throws(FileSystemError) -> [String] {
    try names(in: Descriptor(opening: path, O_RDONLY | O_DIRECTORY)).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// The bytes of the names in an open directory. Changes the position of the descriptor.
  static func names(in directory: Descriptor) throws(FileSystemError) -> [[UInt8]] {
    // closedir closes the descriptor as well.
    let copy = fcntl(directory.number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
    if copy < 0 { throw FileSystemError(errno) }
    guard let stream = fdopendir(copy) else {
      let failure = errno
      close(copy)
      throw FileSystemError(failure)
    }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw FileSystemError(errno) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        Array(bytes.prefix { $0 != 0 })
      }
      if name != [0x2E] && name != [0x2E, 0x2E] { names.append(name) }
    }
  }
}

/// Directories that only one user can use.
package enum PrivateDirectory {
  /// Creates `path` and every directory that is missing above it, with mode 0700, and waits until their names are on
  /// the disk. Existing directories keep their modes. Links are followed as in ``PathWalk``. Throws `.denied` or `.io`.
  package static func create(_ path: String) throws(SecretError) {
    do throws(FileSystemError) { try createMissing(path) } catch {
      throw .system(error, "The directory \(path) cannot be created")
    }
  }

  private static func createMissing(_ path: String) throws(FileSystemError) {
    // Slashes at the end would require that the directory exists.
    var path = path
    while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
    if try isDirectory(path) { return }
    let parent = Path.parent(of: path)
    if parent != path { try createMissing(parent) }
    let place = try PathWalk.place(of: path, followingLink: true)
    if mkdirat(place.directory.number, place.name, 0o700) == 0 {
      // The umask may have taken rights away from the owner.
      let directory = LinuxDirectory(place.directory)
      guard
        try directory.status(of: place.name).mode & 0o700 == 0o700
          || fchmodat(place.directory.number, place.name, 0o700, AT_SYMLINK_NOFOLLOW) == 0
      else { throw FileSystemError(errno) }
      // A directory that this user may change but not read cannot be opened.
      do throws(FileSystemError) {
        return try uninterrupted(directory.synchronize)
      } catch  where error.number == EACCES { return }
    }
    let failure = FileSystemError(errno)
    // Another process may have created the directory.
    guard failure.number == EEXIST, try isDirectory(path) else { throw failure }
  }

  /// Whether `path` leads to a directory. Throws `ENOTDIR` if it leads to something else.
  private static func isDirectory(_ path: String) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      // The name `.` can be resolved only in a directory.
      _ = try PathWalk.place(of: path + "/.", followingLink: true)
    } catch  where error.number == ENOENT {
      return false
    } catch  where error.number == EISDIR {}
    return true
  }

  /// Takes the advisory lock of a directory. The lock ends with the returned descriptor. Returns `nil` if another open
  /// descriptor holds the lock. Throws `ENOTDIR` for a link and for what is not a directory, and `ENOENT`.
  package static func tryLock(_ path: String) throws(FileSystemError) -> Descriptor? {
    let directory = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    while flock(directory.number, LOCK_EX | LOCK_NB) != 0 {
      if errno == EWOULDBLOCK { return nil }
      if errno != EINTR { throw FileSystemError(errno) }
    }
    return directory
  }

  /// Runs `body` while no other process holds the directory's lock. Throws `.timedOut` if one still holds it after
  /// `timeout`.
  package static func withLock<R>(
    _ path: String, timeout: Duration, _ body: () throws(SecretError) -> R
  ) throws(SecretError) -> R {
    let deadline = ContinuousClock.now + timeout
    var lock: Descriptor?
    do throws(FileSystemError) {
      lock = try tryLock(path)
      while lock == nil, .now <= deadline {
        usleep(5000)
        lock = try tryLock(path)
      }
    } catch {
      throw .system(error, "The directory \(path) cannot be locked")
    }
    guard let lock else {
      throw SecretError(
        .timedOut, "Another process kept the directory \(path) locked for \(timeout).", advice: "Try again.")
    }
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }
}
