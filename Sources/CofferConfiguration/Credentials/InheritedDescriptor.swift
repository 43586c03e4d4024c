internal import CofferCore
internal import CofferSystem
internal import CofferLibc

/// A descriptor that this process inherited with a key or a passphrase. It can be read only once, so its text is kept.
/// Thread-safe.
final class InheritedDescriptor: Sendable {
  private let number: String
  private let variable: String
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var outcome: Result<SecretBytes, SecretError>?  // only under the lock

  /// The descriptor that a variable names: by its number in `COFFER_PASSPHRASE_FD`; or, in a variable for the path of a
  /// file, by a path such as `/dev/fd/3`, which a shell's process substitution gives. `nil` for any other path.
  init?(_ value: String, of variable: String) {
    self.variable = variable
    if variable.hasSuffix("_FD") {
      number = value
    } else if variable.hasSuffix("_FILE"), value == "/dev/stdin" {
      number = "0"
    } else if variable.hasSuffix("_FILE"),
      let place = ["/dev/fd/", "/proc/self/fd/"].first(where: value.hasPrefix)
    {
      number = String(value.dropFirst(place.count))
    } else {
      return nil
    }
  }

  /// Reads the descriptor to its end at the first call. Later calls return the same result.
  func text(timeout: Duration) throws(SecretError) -> SecretBytes {
    try lock.withLock(timeout: timeout + .seconds(10)) { () throws(SecretError) in
      let outcome = self.outcome ?? Result { () throws(SecretError) in try read(timeout) }
      // A failure is kept too: after a partial read, the rest would be a wrong passphrase.
      self.outcome = outcome
      return try outcome.get()
    }
  }

  /// Keeps the programs that this one starts from inheriting the descriptor: they could read a file again. Replaces
  /// standard input by the null device, unless it is a terminal.
  func hide() {
    guard let descriptor = Int32(number) else { return }
    if descriptor > STDERR_FILENO {
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)  // fails if the descriptor is closed already
    } else if descriptor == STDIN_FILENO, isatty(descriptor) == 0 {
      let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
      if null < 0 { close(descriptor) } else { dup2(null, descriptor) }
      close(null)
    }
  }

  private func read(_ timeout: Duration) throws(SecretError) -> SecretBytes {
    guard let descriptor = Int32(number), descriptor >= 0, fcntl(descriptor, F_GETFD) >= 0 else {
      throw SecretError(
        .configuration, "\(variable) does not name an open descriptor.",
        advice: "Open the descriptor before the program starts, as a shell does with 3<FILE."
      )
    }
    if isatty(descriptor) == 1 {
      throw SecretError(
        .configuration, "\(variable) names a terminal, which would show what is typed.",
        advice: "Use a pipe or a file. Or unset \(variable), and enter the passphrase when secret asks for it.")
    }
    if descriptor > STDERR_FILENO { hide() }
    defer { hide() }
    let limit = CredentialText.maximumSize
    if let text = try readToEnd(of: descriptor, named: variable, limit: limit, deadline: .now + timeout) { return text }
    throw SecretError(
      .configuration, "\(variable) has more than \(limit) bytes.",
      advice: "Pass the descriptor of a file or pipe that contains only the key or passphrase.")
  }
}
