internal import CofferCore
internal import CofferSystem
internal import Glibc

/// The descriptor that `COFFER_PASSPHRASE_FD` names. It can be read only once, so its text is kept. Thread-safe.
package final class PassphraseDescriptor: Sendable {
  private let number: String
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var outcome: Result<SharedSecret, SecretError>?  // only under the lock

  init(_ number: String) { self.number = number }

  /// Everything that the descriptor had to read.
  func text(timeout: Duration) throws(SecretError) -> SecretBytes {
    try lock.withLock(timeout: timeout + .seconds(10)) { () throws(SecretError) in
      let outcome = self.outcome ?? firstOutcome(timeout)
      // A failure is kept too: the rest of a passphrase that was read in part is no passphrase.
      self.outcome = outcome
      return try outcome.get().bytes.copy()
    }
  }

  /// Keeps programs that this one starts from the descriptor: they could read a file from its beginning again. Puts the
  /// null device in the place of the standard input, unless that is a terminal.
  package func hide() {
    guard let descriptor = Int32(number) else { return }
    if descriptor > STDERR_FILENO {
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)  // fails if the descriptor is closed already
    } else if descriptor == STDIN_FILENO, isatty(descriptor) == 0 {
      let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
      if null < 0 { close(descriptor) } else { dup2(null, descriptor) }
      close(null)
    }
  }

  private func firstOutcome(_ timeout: Duration) -> Result<SharedSecret, SecretError> {
    do throws(SecretError) {
      return .success(SharedSecret(try read(timeout)))
    } catch {
      return .failure(error)
    }
  }

  private func read(_ timeout: Duration) throws(SecretError) -> SecretBytes {
    guard let descriptor = Int32(number), descriptor >= 0, fcntl(descriptor, F_GETFD) >= 0 else {
      throw SecretError(
        .configuration,
        "COFFER_PASSPHRASE_FD is not the number of an open descriptor.",
        advice: "Open the descriptor before the program starts, as a shell does with 3<FILE."
      )
    }
    if descriptor > STDERR_FILENO { hide() }
    defer { hide() }
    let limit = CredentialText.maximumSize
    let text = try readToEnd(
      of: descriptor, named: "COFFER_PASSPHRASE_FD", limit: limit, deadline: .now + timeout)
    guard let text else {
      throw SecretError(
        .configuration, "COFFER_PASSPHRASE_FD has more than \(limit) bytes.",
        advice: "Pass the descriptor of a file or pipe that contains only the passphrase.")
    }
    return text
  }
}
