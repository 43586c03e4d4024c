internal import CofferCore
internal import Glibc

/// The system calls on the configuration's own files, with their errors as sentences.
enum FileAccess {
  /// The largest configuration file, in bytes.
  static let maximumTextSize = 65_536

  /// The error for a failed system call, by its `errno`.
  static func error(_ code: Int32, _ call: String, _ path: String) -> SecretError {
    let reason = "\(call) \(path) failed: \(String(cString: strerror(code)))."
    switch code {
    case EACCES, EPERM, EROFS:
      return SecretError(.denied, reason, advice: "Check who owns it and its permissions.")
    default:
      return SecretError(.io, reason, advice: "Check the path and the disk.")
    }
  }

  /// Whether the path names anything. What keeps that from being known throws.
  static func exists(_ path: String) throws(SecretError) -> Bool {
    var status = stat()
    if stat(path, &status) == 0 { return true }
    let code = errno
    if code == ENOENT || code == ENOTDIR { return false }
    throw error(code, "Looking at", path)
  }

  /// The file's text, or `nil` where there is no file.
  static func text(of path: String) throws(SecretError) -> String? {
    // Non-blocking, so that a FIFO put in its place stops nobody.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    if descriptor < 0 {
      let code = errno
      if code == ENOENT || code == ENOTDIR { return nil }
      throw error(code, "Opening", path)
    }
    defer { close(descriptor) }
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw error(errno, "Looking at", path) }
    if status.st_mode & S_IFMT != S_IFREG || status.st_size > maximumTextSize {
      throw SecretError(
        .configuration,
        "\(path) is not a configuration file: it is no regular file, or larger than 64 KiB.",
        advice: "Move it away."
      )
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while bytes.count <= maximumTextSize {
      let count = read(descriptor, &buffer, buffer.count)
      if count == 0 { break }
      if count < 0 {
        let code = errno
        if code == EINTR { continue }
        throw error(code, "Reading", path)
      }
      bytes += buffer[..<count]
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw SecretError(
        .configuration,
        "The file \(path) is not UTF-8 text.",
        advice: "Correct it, or move it away."
      )
    }
    return text
  }

  /// Makes the directory and those above it that are missing, each for this user alone.
  static func makeDirectory(_ path: String) throws(SecretError) {
    if mkdir(path, 0o700) == 0 { return }
    var code = errno
    if code == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex {
      try makeDirectory(String(path[..<slash]))
      if mkdir(path, 0o700) == 0 { return }
      code = errno
    }
    if code != EEXIST { throw error(code, "Making the directory", path) }
  }

  /// Runs `body` while no other process that asks the same way is in this directory.
  static func withDirectoryLock<R>(
    _ path: String,
    seconds: Int,
    _ body: () throws(SecretError) -> R
  ) throws(SecretError) -> R {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    if descriptor < 0 { throw error(errno, "Opening", path) }
    defer { close(descriptor) }
    let deadline = ContinuousClock.now + .seconds(seconds)
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let code = errno
      if code == EINTR { continue }
      if code != EWOULDBLOCK { throw error(code, "Locking", path) }
      if ContinuousClock.now > deadline {
        throw SecretError(
          .timedOut,
          "Another process kept \(path) busy for \(seconds) seconds.",
          advice: "Try again."
        )
      }
      usleep(5000)
    }
    return try body()
  }

  /// Where the path leads: a configuration file may be a link into somebody's collection of them.
  static func resolved(_ path: String) -> String {
    guard let found = realpath(path, nil) else { return path }
    defer { free(found) }
    return String(cString: found)
  }

  /// Puts `text` in place of the file's in one step, for this user alone, and on the disk.
  static func replace(_ path: String, with text: String) throws(SecretError) {
    let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    let temporary = path + "." + String(UInt64.random(in: .min ... .max), radix: 16)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    if descriptor < 0 { throw error(errno, "Making", temporary) }
    do throws(SecretError) {
      defer { close(descriptor) }
      if fchmod(descriptor, 0o600) != 0 { throw error(errno, "Setting the permissions of", temporary) }
      try writeAll(Array(text.utf8), to: descriptor, path: temporary)
      if fsync(descriptor) != 0 { throw error(errno, "Writing", temporary) }
      if rename(temporary, path) != 0 { throw error(errno, "Replacing", path) }
    } catch {
      unlink(temporary)
      throw error
    }
    let parent = open(directory, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    if parent < 0 { throw error(errno, "Opening", directory) }
    defer { close(parent) }
    if fsync(parent) != 0 { throw error(errno, "Writing", directory) }
  }

  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32, path: String) throws(SecretError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        let code = errno
        if code == EINTR { continue }
        throw error(code, "Writing", path)
      }
      rest = rest.dropFirst(count)
    }
  }
}
