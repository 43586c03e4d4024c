internal import CLinux
internal import Coffer
internal import CofferSystem
internal import Glibc

/// Reads an output stream of a child and writes it, redacted, to this process's stream. If that is a
/// terminal, the child gets a terminal too. Not thread-safe.
final class OutputRelay {
  /// The child's descriptors that this replaces: one, or both if they are the same file.
  let replaced: [Int32]
  let reading: Int32
  /// The child's end. ``ForegroundChild`` closes it after the start.
  let writing: Int32
  private(set) var isOpen = true
  private let isTerminal: Bool
  private var redactor: OutputRedactor
  private var failure: Int32?

  private init(_ replaced: [Int32], _ patterns: [OutputRedactor.Pattern]) throws(SecretError) {
    self.replaced = replaced
    redactor = OutputRedactor(patterns)
    isTerminal = isatty(replaced[0]) == 1
    var ends: [Int32] = [-1, -1]
    if isTerminal {
      // Raw, because this process's terminal processes the output.
      var settings = termios()
      cfmakeraw(&settings)
      var size = winsize()
      _ = ioctl(replaced[0], UInt(TIOCGWINSZ), &size)
      var (controller, terminal): (Int32, Int32) = (-1, -1)
      guard openpty(&controller, &terminal, nil, &settings, &size) == 0 else { throw Self.failure(errno) }
      ends = [controller, terminal]
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    } else {
      guard coffer_pipe(&ends) == 0 else { throw Self.failure(errno) }
    }
    (reading, writing) = (ends[0], ends[1])
  }

  deinit { if isOpen { close(reading) } }

  /// Relays for standard output and standard error: a single one if both are the same file, so that the order
  /// of the output is kept.
  static func outputs(redacting patterns: [OutputRedactor.Pattern]) throws(SecretError) -> [OutputRelay] {
    if Output.standard.isSameFile(as: .messages) {
      return [try OutputRelay([STDOUT_FILENO, STDERR_FILENO], patterns)]
    }
    return [try OutputRelay([STDOUT_FILENO], patterns), try OutputRelay([STDERR_FILENO], patterns)]
  }

  /// Gives the child's terminal the size of this process's terminal. Returns whether the size changed.
  func resize() -> Bool {
    guard isTerminal, isOpen else { return false }
    var (wanted, current) = (winsize(), winsize())
    guard ioctl(replaced[0], UInt(TIOCGWINSZ), &wanted) == 0,
      ioctl(reading, UInt(TIOCGWINSZ), &current) == 0
    else { return false }
    if wanted.ws_row == current.ws_row && wanted.ws_col == current.ws_col { return false }
    return ioctl(reading, UInt(TIOCSWINSZ), &wanted) == 0
  }

  /// Relays the output that can be read without waiting.
  func relay() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = read(reading, &buffer, buffer.count)
    if count > 0 {
      show(redactor.redact(buffer[..<count]))
    } else if count == 0 || errno != EINTR {  // the end of a terminal's output is EIO
      end()
    }
  }

  /// Relays the remaining output after the child has ended, without waiting for processes that the child left
  /// running. Throws `.io` if output could not be written.
  func finish() throws(SecretError) {
    while isOpen {
      var source = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
      guard poll(&source, 1, 0) > 0 else { break }
      relay()
    }
    end()
    if let failure {
      throw SecretError(.io, "The command's output could not be written: \(systemMessage(failure)).")
    }
  }

  private func end() {
    guard isOpen else { return }
    show(redactor.finish())
    if isOpen { close(reading) }
    isOpen = false
  }

  private func show(_ bytes: [UInt8]) {
    do throws(SystemCallError) {
      try writeAll(bytes.span, to: replaced[0])
    } catch {
      // Closes the pipe, so that the command's next write fails as well. A reader that has left is not an
      // error.
      if error.number != EPIPE && error.number != EIO { failure = error.number }
      if isOpen { close(reading) }
      isOpen = false
    }
  }

  private static func failure(_ code: Int32) -> SecretError {
    SecretError(.io, "A channel for the command's output cannot be created: \(systemMessage(code)).")
  }
}
