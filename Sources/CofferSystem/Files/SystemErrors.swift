package import CofferCore
internal import Glibc

/// A failed system call, by its `errno`.
package typealias SystemCallError = FileSystemError

/// The system's text for an `errno`.
package func systemMessage(_ code: Int32) -> String { String(cString: strerror(code)) }

extension SecretError {
  /// The error for a link that was not followed, by the rule of ``FileSystemError/refusedLink``.
  package static func refusedLink(_ path: String) -> SecretError {
    SecretError(
      .denied,
      "The link \(path) was not followed: it belongs to another user, and everybody can write to its directory.",
      advice: "If you trust the link, give the path that it leads to.")
  }

  /// The error for a failed system call, as ``system(_:_:)-(Int32,_)`` words it.
  package static func system(_ error: SystemCallError, _ what: String) -> SecretError {
    error.refusedLink.map { .refusedLink($0) } ?? .system(error.number, what)
  }

  /// The error for a failed system call. `what` and the system's text form the sentence.
  ///
  /// The code is `.denied` for `EACCES`, `EPERM` and `EROFS`, and `.io` otherwise.
  package static func system(_ code: Int32, _ what: String) -> SecretError {
    let reason = "\(what): \(systemMessage(code))."
    switch code {
    case EACCES, EPERM, EROFS:
      return SecretError(.denied, reason, advice: "Check the owner and the permissions.")
    default:
      return SecretError(.io, reason, advice: "Check the path and the disk.")
    }
  }
}
