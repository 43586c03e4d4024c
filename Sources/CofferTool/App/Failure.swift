internal import Coffer

/// A command's failure that is not a backend's error.
struct Failure: Error {
  let status: ExitStatus
  /// Full sentences: what happened, and what to do. Never contains a value.
  let message: String

  init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  static func usage(_ message: String) -> Failure { Failure(.usage, message) }
}
