internal import CLinux
internal import Coffer
internal import Glibc

/// One of a child's output streams, taken in by this process and passed on masked. A terminal stays a
/// terminal to the child.
final class OutputRelay {
  /// The child's descriptors that go here: one, or both where they are the same file.
  let replaced: [Int32]
  let reading: Int32
  /// The child's end. Closed by whoever starts the child.
  let writing: Int32
  private(set) var isOpen = true
  private let isTerminal: Bool
  private var output: OutputRedactor
  private var failure: Int32?

  private init(_ replaced: [Int32], _ patterns: [OutputRedactor.Pattern]) throws(SecretError) {
    self.replaced = replaced
    output = OutputRedactor(patterns)
    isTerminal = isatty(replaced[0]) == 1
    var ends: [Int32] = [-1, -1]
    if isTerminal {
      // Without processing: what the terminal would do, it still does.
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

  /// Standard output and standard error, as one where they are one file, so that their order stays.
  static func outputs(masking patterns: [OutputRedactor.Pattern]) throws(SecretError) -> [OutputRelay] {
    if Output.standard.isSameFile(as: .messages) {
      return [try OutputRelay([STDOUT_FILENO, STDERR_FILENO], patterns)]
    }
    return [try OutputRelay([STDOUT_FILENO], patterns), try OutputRelay([STDERR_FILENO], patterns)]
  }

  /// Gives the child's terminal the size of this process's. Returns whether it had another.
  func resize() -> Bool {
    guard isTerminal, isOpen else { return false }
    var (wanted, there) = (winsize(), winsize())
    guard ioctl(replaced[0], UInt(TIOCGWINSZ), &wanted) == 0,
      ioctl(reading, UInt(TIOCGWINSZ), &there) == 0
    else { return false }
    if wanted.ws_row == there.ws_row && wanted.ws_col == there.ws_col { return false }
    return ioctl(reading, UInt(TIOCSWINSZ), &wanted) == 0
  }

  /// Passes on what can be read now.
  func passOn() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = read(reading, &buffer, buffer.count)
    if count > 0 {
      show(output.pass(buffer[..<count]))
    } else if count == 0 || errno != EINTR {  // a terminal's end is EIO
      end()
    }
  }

  /// Passes on what is left when the child has ended; what processes that it left behind print later is lost.
  /// Throws `.io` where something could not be written.
  func finish() throws(SecretError) {
    while isOpen {
      var source = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
      guard poll(&source, 1, 0) > 0 else { break }
      passOn()
    }
    end()
    if let failure {
      throw SecretError(.io, "The command's output could not be written: \(systemMessage(failure)).")
    }
  }

  private func end() {
    guard isOpen else { return }
    show(output.finish())
    if isOpen { close(reading) }
    isOpen = false
  }

  private func show(_ bytes: [UInt8]) {
    do throws(SecretError) {
      try writeAll(bytes.span, to: replaced[0], named: "output")
    } catch {
      // The command is to meet the same: its next write fails. That the reader left is not an error here.
      let code = errno
      if code != EPIPE && code != EIO { failure = code }
      if isOpen { close(reading) }
      isOpen = false
    }
  }

  private static func failure(_ code: Int32) -> SecretError {
    SecretError(.io, "No channel for the command's output can be made: \(systemMessage(code)).")
  }
}
