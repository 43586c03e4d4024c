package import CofferCore
internal import Glibc

/// A failed system call, by its `errno`.
package typealias SystemCallError = FileSystemError

/// The system's text for an `errno`.
package func systemMessage(_ code: Int32) -> String { String(cString: strerror(code)) }

extension SecretError {
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
