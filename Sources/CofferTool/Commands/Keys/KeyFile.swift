internal import Coffer
internal import Glibc

/// A file with the text of a vault's key, for its owner only.
struct KeyFile {
  let path: String

  /// The key in the file, or `nil` where there is no file. Throws `.invalidKey` where it holds something else,
  /// `.denied` where others may read it.
  func key() throws(SecretError) -> SecretBytes? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    if descriptor < 0 {
      let code = errno
      if code == ENOENT || code == ENOTDIR { return nil }
      throw SecretError(
        code == EACCES ? .denied : .io,
        "The key file \(path) cannot be opened: \(systemMessage(code))."
      )
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw SecretError(
        .invalidKey,
        "The key file \(path) is not a regular file.",
        advice: "Name another with --key-file."
      )
    }
    if status.st_mode & 0o077 != 0 {
      throw SecretError(
        .denied,
        "The key file \(path) is open to other users.",
        advice: "If nobody else can have read it, close it with chmod 600; otherwise make a new key."
      )
    }
    return try VaultKey.parse(try ValueInput.readAll(descriptor, named: path))
  }

  /// Makes the file, and directories for it as needed, and returns when it has reached the disk. Throws
  /// `.alreadyExists` where the path names anything, and leaves nothing behind when it throws.
  func create(_ key: borrowing SecretBytes) throws(SecretError) {
    try Directory.create(Directory.parent(of: path))
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if descriptor < 0 {
      let code = errno
      throw SecretError(
        code == EEXIST ? .alreadyExists : code == EACCES || code == EROFS ? .denied : .io,
        "The key file \(path) cannot be made: \(systemMessage(code))."
      )
    }
    defer { close(descriptor) }
    do throws(SecretError) {
      try VaultKey.text(of: key).withBytes { bytes throws(SecretError) in
        try writeAll(bytes, to: descriptor, named: path)
      }
      try writeAll("\n".utf8.span, to: descriptor, named: path)
      guard fchmod(descriptor, 0o600) == 0, fsync(descriptor) == 0 else {
        throw SecretError(.io, "The key file \(path) cannot be written: \(systemMessage(errno)).")
      }
      try Directory.sync(Directory.parent(of: path))
    } catch {
      unlink(path)
      throw error
    }
  }
}
