internal import Coffer

/// Why a command ends without having done what it was asked, where no backend's error says it.
struct Failure: Error {
  let status: ExitStatus
  /// What happened, and what to do about it, in full sentences. Never a value.
  let message: String

  init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  static func usage(_ message: String) -> Failure { Failure(.usage, message) }
}
