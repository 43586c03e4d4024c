internal import CLinux
internal import Coffer
internal import Glibc

/// The terminal device itself, for questions: standard input and output may be pipes meanwhile.
struct Terminal: ~Copyable {
  private let descriptor: Int32

  /// The longest line in bytes that a terminal passes on whole: Linux's line discipline holds 4096 bytes, one
  /// of them the line's end, and drops what is beyond without a sign.
  static let longestLine = 4094

  /// Throws `.unavailable` where the process has no terminal.
  init() throws(SecretError) {
    descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    if descriptor < 0 {
      throw SecretError(
        .unavailable,
        "There is no terminal to ask on.",
        advice: "Give the value through a pipe or a file instead."
      )
    }
  }

  deinit { close(descriptor) }

  /// Whether there is a terminal to ask on.
  static var isThere: Bool {
    let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0
  }

  /// Asks, and reads one line without showing it. There is no deadline: a person takes as long as needed.
  ///
  /// Echo is back on however it ends, by an error or by a signal; a stopped process asks again when it is
  /// continued. Throws `.promptDismissed` at an end of file, `.tooLarge` where the line may have been cut off.
  borrowing func readHidden(_ question: String) throws(SecretError) -> SecretBytes {
    var original = termios()
    guard tcgetattr(descriptor, &original) == 0 else { throw Self.lost(errno) }
    var hidden = original
    hidden.c_lflag &= ~tcflag_t(ECHO | ECHOE | ECHOK | ECHONL)
    hidden.c_lflag |= tcflag_t(ICANON | ISIG)
    hidden.c_iflag |= tcflag_t(ICRNL)

    // Signals are taken in by reading a descriptor, so that no handler runs between two instructions.
    let signals = try BlockedSignals([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP])
    var count = 0
    let line = try SecretBytes(count: Self.longestLine + 2) { block throws(SecretError) in
      // Before the question, so that nothing typed in answer to it is dropped or shown.
      guard tcsetattr(descriptor, TCSAFLUSH, &hidden) == 0 else { throw Self.lost(errno) }
      defer { tcsetattr(descriptor, TCSAFLUSH, &original) }
      try ask(question)
      while true {
        if let signal = try signals.wait(orReadable: descriptor) {
          tcsetattr(descriptor, TCSAFLUSH, &original)
          newLine()
          signals.deliver(signal)
          // Still here: it was stopped and continued, or the signal was one to be survived.
          tcsetattr(descriptor, TCSAFLUSH, &hidden)
          count = 0
          try ask(question)
          continue
        }
        let room = UnsafeMutableRawBufferPointer(rebasing: block[count...])
        let got = read(descriptor, room.baseAddress, room.count)
        if got < 0 && errno == EINTR { continue }
        if got < 0 { throw Self.lost(errno) }
        if got == 0 && count == 0 {
          newLine()
          throw SecretError(.promptDismissed, "Nothing was entered.")
        }
        count += got
        if got == 0 { break }
        if block[count - 1] == UInt8(ascii: "\n") {
          count -= 1
          break
        }
        if count > Self.longestLine { break }
      }
    }
    newLine()
    if count > Self.longestLine {
      throw SecretError(
        .tooLarge,
        "A terminal passes on at most \(Self.longestLine) bytes of a line; this one was cut off.",
        advice: "Give the value through a pipe or with --from-file."
      )
    }
    return line.withBytes { SecretBytes(copying: $0.extracting(0..<count)) }
  }

  private borrowing func ask(_ question: String) throws(SecretError) {
    try writeAll(question.printable.utf8.span, to: descriptor, named: "the terminal")
  }

  private borrowing func newLine() {
    do throws(SecretError) {
      try writeAll("\n".utf8.span, to: descriptor, named: "the terminal")
    } catch {}  // the terminal is gone, and the caller's error says so
  }

  private static func lost(_ code: Int32) -> SecretError {
    SecretError(.unavailable, "The terminal cannot be used to ask: \(systemMessage(code)).")
  }
}
