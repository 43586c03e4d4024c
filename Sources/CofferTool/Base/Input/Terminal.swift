internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The terminal device, for prompts. Standard input and output may be redirected.
struct Terminal {
  private let device: Descriptor

  /// The longest line, in bytes, that a terminal delivers whole. Linux's line discipline holds 4096 bytes including the
  /// line's end, and silently drops the rest.
  static let longestLine = 4094

  /// Throws `.unsupported` if the process has no terminal.
  init() throws(SecretError) {
    do throws(FileSystemError) { device = try Descriptor(opening: "/dev/tty", O_RDWR | O_NOCTTY) } catch {
      throw SecretError(
        .unsupported, "There is no terminal for a prompt.",
        advice: "Provide the value through a pipe or a file.")
    }
  }

  static var isAvailable: Bool { (try? Terminal()) != nil }

  /// Asks a question, and throws a failure unless the answer is `y` or `yes`. If nobody can be asked, for example
  /// because standard input is a pipe, the failure has `reason` and `advice`. Throws as ``readLine(_:isHidden:)`` does.
  static func confirm(
    _ question: String, otherwise reason: String = "Nobody could be asked.", advice: String? = nil,
    usingDevice: Bool = false
  ) throws {
    guard let answer = try answer("\(question) [y/N] ", usingDevice: usingDevice) else {
      throw Failure(.wouldOverwrite, reason, advice: advice)
    }
    if !["y", "yes"].contains(answer) { throw Failure(.refused, "The answer was no.") }
  }

  /// Asks a question on the terminal. Returns the answer in lower case, or `nil` if nobody can be asked: with
  /// `usingDevice`, somebody can even if standard input is a pipe.
  static func answer(_ question: String, usingDevice: Bool = false) throws -> String? {
    guard usingDevice || isatty(STDIN_FILENO) == 1, BackendConfiguration.current().canPrompt else { return nil }
    return try Terminal().readLine(question, isHidden: false).string().lowercased()
  }

  /// Prompts, and reads one line without echo if `isHidden`. Has no deadline.
  ///
  /// Restores the echo in any case: after an error, and before a signal ends or stops the process. After a stopped
  /// process continues, prompts again. Throws `.endOfInput` at the end of input, and `.tooLarge` if the terminal may
  /// have cut the line off.
  func readLine(_ prompt: String, isHidden: Bool = true) throws(SecretError) -> SecretBytes {
    let descriptor = device.number
    defer { withExtendedLifetime(device) {} }
    var original = termios()
    guard tcgetattr(descriptor, &original) == 0 else { throw Self.lost(errno) }
    var hidden = original
    if isHidden { hidden.c_lflag &= ~tcflag_t(ECHO | ECHOE | ECHOK | ECHONL) }
    hidden.c_lflag |= tcflag_t(ICANON | ISIG)
    hidden.c_iflag |= tcflag_t(ICRNL)

    // Signals are read from a descriptor, because a handler could run between any two instructions.
    let signals = try BlockedSignals(BlockedSignals.interruptions + [SIGTSTP])
    let line = try SecretBytes(capacity: Self.longestLine + 2) { block throws(SecretError) in
      var count = 0
      // Before the prompt is shown: this call drops earlier input, and the answer must not be dropped or shown.
      guard tcsetattr(descriptor, TCSAFLUSH, &hidden) == 0 else { throw Self.lost(errno) }
      defer { tcsetattr(descriptor, TCSAFLUSH, &original) }
      try show(prompt)
      while true {
        if let signal = try signals.wait(orReadable: [descriptor]).arrival?.signal {
          tcsetattr(descriptor, TCSAFLUSH, &original)
          showLineEnd()
          BlockedSignals.deliver(signal)
          // The process was stopped and has continued, or the signal did not end it.
          tcsetattr(descriptor, TCSAFLUSH, &hidden)
          count = 0
          try show(prompt)
          continue
        }
        let room = UnsafeMutableRawBufferPointer(rebasing: block[count...])
        let got = read(descriptor, room.baseAddress, room.count)
        if got < 0 && errno == EINTR { continue }
        if got < 0 { throw Self.lost(errno) }
        if got == 0 && count == 0 {
          showLineEnd()
          throw SecretError(.endOfInput, "Nothing was entered.")
        }
        count += got
        if block[count - 1] == UInt8(ascii: "\n") { return count - 1 }
        if got == 0 || count > Self.longestLine { return count }
      }
    }
    if isHidden { showLineEnd() }
    if line.count > Self.longestLine {
      throw SecretError(
        .tooLarge, "The line is longer than \(Self.longestLine) bytes, so the terminal cut it off.",
        advice: "Provide the value through a pipe or with --from-file.")
    }
    return line
  }

  private func show(_ text: String) throws(SecretError) {
    try writeAll(text.printable.utf8.span, to: device.number, named: "the terminal")
  }

  private func showLineEnd() {
    // If the terminal is gone, the caller's error reports it.
    do throws(FileSystemError) { try writeAll("\n".utf8.span, to: device.number) } catch {}
  }

  private static func lost(_ code: Int32) -> SecretError {
    SecretError(.unsupported, "The terminal cannot be used for a prompt: \(FileSystemError(code)).")
  }
}

extension SecretError.Code {
  /// A person has ended a prompt with Ctrl-D.
  static let endOfInput = SecretError.Code("endOfInput")
}

extension BackendConfiguration {
  /// Whether a prompt is possible: prompts are not disabled, and the process has a terminal.
  var canPrompt: Bool { mayPrompt && Terminal.isAvailable }
}
