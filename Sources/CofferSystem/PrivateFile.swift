internal import CLinux
package import CofferCore
internal import Glibc

/// Files for one user alone: keys, passphrases, exports and Coffer's own configuration.
package enum PrivateFile {
  /// The contents of a file that holds a key or a passphrase, or `nil` if there is no file.
  ///
  /// `subject` stands for the file in errors, as the subject of their sentences. Throws `.denied` if the file
  /// is exposed by the rule of ``FileExposure`` or cannot be opened, `.configuration` if it is not a regular
  /// file or has more than `limit` bytes, and `.io` if it cannot be read.
  package static func read(
    _ path: String,
    as subject: String,
    limit: Int
  ) throws(SecretError) -> SecretBytes? {
    try read(path, as: subject, limit: limit, mustBePrivate: true)
  }

  /// The UTF-8 text of a regular file, whoever may read it, or `nil` if there is no file. Throws as
  /// ``read(_:as:limit:)`` does, and `.configuration` if it is not UTF-8.
  package static func text(
    of path: String,
    as subject: String,
    limit: Int
  ) throws(SecretError) -> String? {
    guard let bytes = try read(path, as: subject, limit: limit, mustBePrivate: false) else { return nil }
    let text = bytes.withBytes { bytes in
      bytes.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
    }
    guard let text else { throw unusable(subject, "is not UTF-8 text") }
    return text
  }

  private static func read(
    _ path: String,
    as subject: String,
    limit: Int,
    mustBePrivate: Bool
  ) throws(SecretError) -> SecretBytes? {
    let (file, status): (Descriptor, FileStatus)
    do throws(SystemCallError) {
      // Non-blocking: opening a FIFO that has no writer must not wait.
      file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      var found = stat()
      if fstat(file.number, &found) != 0 { throw SystemCallError(errno) }
      status = FileStatus(found)
    } catch {
      if error.number == ENOENT || error.number == ENOTDIR { return nil }
      throw .system(error.number, "\(subject) cannot be opened")
    }
    defer { withExtendedLifetime(file) {} }
    if !status.isRegular { throw unusable(subject, "is not a regular file") }
    if mustBePrivate, let exposure = FileExposure(of: status) {
      throw SecretError(.denied, "\(subject) \(exposure.predicate).", advice: exposure.advice)
    }
    guard let bytes = try readToEnd(of: file.number, named: path, limit: limit) else {
      throw unusable(subject, "has more than \(limit) bytes")
    }
    return bytes
  }

  private static func unusable(_ subject: String, _ predicate: String) -> SecretError {
    SecretError(
      .configuration, "\(subject) \(predicate).", advice: "Correct the path, or move the file away.")
  }

  /// Puts a file of mode 0600 with `contents` at `path`, in one step that is on the disk on return.
  ///
  /// With `replacing`, a regular file at `path` is replaced, or the one that a symbolic link at `path` leads
  /// to; anything else there throws `.io`. Otherwise `.alreadyExists` is thrown if `path` names anything.
  /// Throws `.denied` or `.io` if the directory does not exist or cannot be written to. If it throws, no file
  /// is left behind; a signal that ends the process may leave one whose name ends in `.unfinished`.
  package static func write(
    _ contents: Span<UInt8>,
    to path: String,
    replacing: Bool
  ) throws(SecretError) {
    if replacing {
      if let status = FileStatus(of: path), !status.isRegular {
        throw SecretError(
          .io, "\(path) is not a regular file, so nothing was written to it.", advice: "Name another file.")
      }
    }
    do throws(SystemCallError) {
      try put(contents, at: LinuxFileSystem().locate(path, followingLink: true), replacing: replacing)
    } catch {
      switch error.number {
      case EEXIST where !replacing:
        throw SecretError(.alreadyExists, "The file \(path) already exists.", advice: "Choose another path.")
      case ENOENT, ENOTDIR:
        throw SecretError(
          .io, "The directory of the file \(path) does not exist.", advice: "Create it first.")
      default: throw .system(error.number, "The file \(path) cannot be written")
      }
    }
  }

  private static func put(
    _ contents: Span<UInt8>,
    at location: Location,
    replacing: Bool
  ) throws(SystemCallError) {
    let number = UInt64.random(in: .min ... .max)
    let unfinished = "\(location.name).\(String(number, radix: 16)).unfinished"
    let file = try location.directory.create(unfinished)
    do throws(SystemCallError) {
      try contents.withUnsafeBytes { bytes throws(SystemCallError) in
        var written = 0
        while written < bytes.count {
          let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
          written += try retrying { () throws(SystemCallError) in try file.write(rest, at: written) }
        }
      }
      try retrying { () throws(SystemCallError) in try file.synchronize() }
      try location.directory.rename(unfinished, to: location.name, replacing: replacing)
    } catch {
      // The first error is the one to report.
      do throws(SystemCallError) { try location.directory.remove(unfinished) } catch {}
      throw error
    }
    try retrying { () throws(SystemCallError) in try location.directory.synchronize() }
  }

  /// Repeats a system call that a signal interrupted.
  private static func retrying<R>(_ call: () throws(SystemCallError) -> R) throws(SystemCallError) -> R {
    while true {
      do throws(SystemCallError) {
        return try call()
      } catch  where error.number == EINTR {}
    }
  }
}
