internal import CLinux
internal import Coffer
internal import Glibc

/// A file for its owner only, which appears under its name when all of it is on the disk, or never.
enum PrivateFile {
  /// Writes `contents` to `path`, mode 0600, or, where the path is a link, to the file it leads to.
  ///
  /// Throws `.alreadyExists` where there is something already, unless it may be `replacing` a regular file;
  /// and leaves nothing behind when it throws or a signal ends the process.
  static func write(
    _ contents: borrowing SecretBytes, to path: String, replacing: Bool
  ) throws(SecretError) {
    let signals = try BlockedSignals([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    defer { withExtendedLifetime(signals) {} }
    let target = replacing ? try replaceable(path) : path
    let unfinished = "\(target).\(getpid()).unfinished"
    let descriptor = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw failure(path, errno) }
    defer { close(descriptor) }
    do throws(SecretError) {
      try contents.withBytes { bytes throws(SecretError) in
        try writeAll(bytes, to: descriptor, named: path)
      }
      guard fchmod(descriptor, 0o600) == 0, fsync(descriptor) == 0 else { throw failure(path, errno) }
      if replacing {
        guard rename(unfinished, target) == 0 else { throw failure(path, errno) }
      } else {
        guard link(unfinished, target) == 0 else {
          throw errno == EEXIST ? taken(path) : failure(path, errno)
        }
        unlink(unfinished)
      }
    } catch {
      unlink(unfinished)
      throw error
    }
    try Directory.sync(Directory.parent(of: target))
  }

  /// Where the path leads. Throws where that is anything but a regular file or nothing.
  private static func replaceable(_ path: String) throws(SecretError) -> String {
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      throw SecretError(
        .io, "\(path) is not a regular file, so nothing was written to it.",
        advice: "Name a file, or use standard output.")
    }
    guard let found = realpath(path, nil) else { return path }
    defer { free(found) }
    return String(cString: found)
  }

  private static func taken(_ path: String) -> SecretError {
    SecretError(
      .alreadyExists, "There is something at \(path) already.", advice: "Add --force to replace it.")
  }

  private static func failure(_ path: String, _ code: Int32) -> SecretError {
    if code == ENOENT || code == ENOTDIR {
      return SecretError(.io, "There is no directory for the file \(path).", advice: "Make it first.")
    }
    return SecretError(
      code == EACCES || code == EROFS ? .denied : .io,
      "The file \(path) cannot be written: \(systemMessage(code)).")
  }
}
