internal import Coffer
internal import Glibc

/// Directories for files that only their owner may see.
enum Directory {
  static func parent(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// `path` from the root on: what is recorded must mean the same in another working directory.
  static func absolute(_ path: String) throws(SecretError) -> String {
    if path.utf8.first == UInt8(ascii: "/") { return path }
    guard let current = getcwd(nil, 0) else {
      throw SecretError(.io, "The working directory cannot be read: \(systemMessage(errno)).")
    }
    defer { free(current) }
    return String(cString: current) + "/" + path
  }

  /// Makes `path` and what is missing above it, with mode 0700. What exists stays as it is.
  static func create(_ path: String) throws(SecretError) {
    if mkdir(path, 0o700) == 0 { return }
    let code = errno
    switch code {
    case EEXIST:
      var status = stat()
      guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { throw failure(path, ENOTDIR) }
    case ENOENT where parent(of: path) != path:
      try create(parent(of: path))
      guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure(path, errno) }
    default: throw failure(path, code)
    }
  }

  /// The names in a directory, but for itself and the one above; a name that is no UTF-8 is repaired. `nil` where
  /// it cannot be read, with `errno` set.
  static func entries(_ path: String) -> [String]? {
    guard let directory = opendir(path) else { return nil }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }

  /// Whether both paths lead to one file.
  static func isSameFile(_ left: String, _ right: String) -> Bool {
    var (first, second) = (stat(), stat())
    return stat(left, &first) == 0 && stat(right, &second) == 0
      && first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// Returns when the directory's entries have reached the disk.
  static func sync(_ path: String) throws(SecretError) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(path, errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure(path, errno) }
  }

  private static func failure(_ path: String, _ code: Int32) -> SecretError {
    SecretError(
      code == EACCES || code == EROFS ? .denied : .io,
      "The directory \(path) cannot be made or written to: \(systemMessage(code))."
    )
  }
}
