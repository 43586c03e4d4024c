internal import CofferVaultFormat
package import CofferSystem
package import CofferCore
internal import Glibc

// The loops over single calls: short reads and writes, interruptions.

/// Makes a call again where a signal interrupted it. For the calls that `EINTR` is documented of: `open`,
/// `ftruncate`, `fsync`, `fdatasync`, `flock`.
package func uninterrupted<R>(_ call: () throws(FileSystemError) -> R) throws(FileSystemError) -> R {
  while true {
    do throws(FileSystemError) { return try call() } catch {
      if error.number != EINTR { throw error }
    }
  }
}

extension File {
  /// Reads `count` bytes at `offset`. Throws `.tampered` where the file ends before.
  package func readFully(_ count: Int, at offset: Int, path: String) throws(SecretError) -> [UInt8] {
    var failure: FileSystemError?
    var filled = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let buffer = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
      while filled < count, failure == nil {
        do throws(FileSystemError) {
          let read = try read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]),
            at: offset + filled
          )
          if read == 0 { break }
          filled += read
        } catch {
          if error.number != EINTR { failure = error }
        }
      }
      initialized = filled
    }
    if let failure { throw .io(failure, "read", path: path) }
    guard filled == count else { throw .tampered("the file is cut short") }
    return bytes
  }

  /// Writes all of `bytes` at `offset`.
  package func writeFully(_ bytes: [UInt8], at offset: Int) throws(FileSystemError) {
    var written = 0
    while written < bytes.count {
      do throws(FileSystemError) {
        let result = bytes.withUnsafeBytes { buffer in
          Result { () throws(FileSystemError) in
            try write(UnsafeRawBufferPointer(rebasing: buffer[written...]), at: offset + written)
          }
        }
        let count = try result.get()
        guard count > 0 else { throw FileSystemError(EIO) }
        written += count
      } catch {
        if error.number != EINTR { throw error }
      }
    }
  }
}

extension SecretError {
  /// A system call's failure on the vault at `path`, as the error that its user should see.
  package static func io(_ error: FileSystemError, _ action: String, path: String) -> SecretError {
    switch error.number {
    case ENOENT, ENOTDIR:
      return SecretError(
        .vaultNotFound,
        "There is no vault at \(path).",
        advice: "Make one with `secret init`, or check the path."
      )
    case ELOOP:
      // Links that lead somewhere were followed before; this one does not, or was put there since.
      return SecretError(
        .vaultNotFound,
        "The link at \(path) leads to no vault.",
        advice: "Make the vault, or mend the link."
      )
    case EISDIR, ENXIO, ENODEV:
      return .notAVault(path: path)
    case EACCES, EPERM, EROFS:
      return SecretError(
        .denied,
        "The system does not let this user \(action) the vault at \(path): \(error.text).",
        advice: "Check who owns it, its directory's permissions and whether it is mounted read-only."
      )
    case ENOSPC, EDQUOT, EFBIG:
      return SecretError(
        .io,
        "There is no room to \(action) the vault at \(path): \(error.text).",
        advice: "Everything stored before is still there; free some space and try again."
      )
    case EMFILE, ENFILE:
      return SecretError(
        .io,
        "Too many files are open to \(action) the vault at \(path).",
        advice: "Close some and try again."
      )
    case EEXIST:
      return SecretError(
        .alreadyExists,
        "There is something at \(path) already.",
        advice: "It was left as it is; choose another path, or move it away."
      )
    default:
      return SecretError(
        .io,
        "The system failed to \(action) the vault at \(path): \(error.text).",
        advice: "Everything acknowledged before is still there."
      )
    }
  }

  package static func notAVault(path: String) -> SecretError {
    SecretError(
      .notAVault,
      "What is at \(path) is not a vault.",
      advice: "Check the path; nothing was changed."
    )
  }
}

extension FileSystemError {
  /// The system's own words for it.
  package var text: String { String(cString: strerror(number)) }
}
