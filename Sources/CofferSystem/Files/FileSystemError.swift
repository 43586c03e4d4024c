package import CofferCore
internal import CofferLibc

/// The `errno` of a failed system call on a file, a process, a pipe or a terminal.
package struct FileSystemError: Error, Hashable, Sendable, CustomStringConvertible {
  package let number: Int32
  /// The path of a link that was not followed, because another user put it into a directory that everybody can write
  /// to. The number is `EACCES` then.
  package let refusedLink: String?

  package init(_ number: Int32, refusedLink: String? = nil) {
    (self.number, self.refusedLink) = (number, refusedLink)
  }

  package var description: String { String(cString: strerror(number)) }
}

extension SecretError {
  /// The error for a link that was not followed, by the rule of ``FileSystemError/refusedLink``.
  package static func refusedLink(_ path: String) -> SecretError {
    SecretError(
      .denied,
      "The link \(path) was not followed: it belongs to another user, and everybody can write to its directory.",
      advice: "If you trust the link, give the path that it leads to.")
  }

  /// The error for a failed system call. `what` and the system's text form the sentence.
  ///
  /// The code is `.denied` for `EACCES`, `EPERM` and `EROFS`, and `.io` otherwise.
  package static func system(_ error: FileSystemError, _ what: String) -> SecretError {
    if let link = error.refusedLink { return .refusedLink(link) }
    let reason = "\(what): \(error)."
    return [EACCES, EPERM, EROFS].contains(error.number)
      ? SecretError(.denied, reason, advice: "Check the owner and the permissions.")
      : SecretError(.io, reason, advice: "Check the path and the disk.")
  }
}
