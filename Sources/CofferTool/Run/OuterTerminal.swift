internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The terminal of this process. While it is raw, its keys go to a command on an inner terminal. Not thread-safe.
///
/// Restored when it is released, and whenever ``restore()`` is called.
final class OuterTerminal {
  /// Opened again, because setting the standard streams to non-blocking would change them for other processes too.
  private let opened: Descriptor?
  let descriptor: Int32
  /// Whether it is the controlling terminal of this process's session.
  private let isControlling: Bool
  /// The settings before the terminal became raw; `nil` if it is not raw.
  private var saved: termios?

  /// Uses the first of `descriptors` that is a terminal, preferably the controlling one. `nil` if none is a terminal.
  init?(of descriptors: [Int32]) {
    let terminals = descriptors.filter { isatty($0) == 1 }
    guard let first = terminals.first(where: Self.isControlling) ?? terminals.first else { return nil }
    isControlling = Self.isControlling(first)
    let path = isControlling ? "/dev/tty" : ttyname(first).map { String(cString: $0) }
    opened = path.flatMap { try? Descriptor(opening: $0, O_RDWR | O_NOCTTY | O_NONBLOCK) }
    descriptor = opened?.number ?? first
  }

  deinit { restore() }

  private static func isControlling(_ descriptor: Int32) -> Bool { tcgetsid(descriptor) == getsid(0) }

  func isSame(as other: Int32) -> Bool {
    guard isatty(other) == 1 else { return false }
    if isControlling || Self.isControlling(other) { return isControlling && Self.isControlling(other) }
    var (first, second) = (stat(), stat())
    return fstat(descriptor, &first) == 0 && fstat(other, &second) == 0 && first.st_rdev == second.st_rdev
  }

  /// Whether this process may read the terminal and change it. Only the controlling terminal has job control.
  var isForeground: Bool { !isControlling || tcgetpgrp(descriptor) == getpgrp() }

  var settings: termios? {
    var settings = termios()
    return tcgetattr(descriptor, &settings) == 0 ? settings : nil
  }

  var size: winsize? {
    var size = winsize()
    return ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
  }

  var isRaw: Bool { saved != nil }

  /// Makes the terminal pass every byte on as it is. May be called again after another process changed it.
  func makeRaw() {
    guard let original = saved ?? settings else { return }
    var raw = original
    cfmakeraw(&raw)
    if tcsetattr(descriptor, TCSANOW, &raw) == 0 { saved = original }
  }

  /// Returns to the settings from before ``makeRaw()``, unless another process group has the terminal now.
  func restore() {
    guard var original = saved.take() else { return }
    if isForeground { tcsetattr(descriptor, TCSANOW, &original) }
  }

  /// Creates a terminal like this one for a command. This process keeps the other side, the controller, which does not
  /// block. Close the command's side here after the command has started.
  func makeInner() throws(SecretError) -> (controller: Descriptor, terminal: Descriptor) {
    var (one, other): (Int32, Int32) = (-1, -1)
    let (controller, terminal): (Descriptor, Descriptor)
    do throws(FileSystemError) {
      guard openpty(&one, &other, nil, nil, nil) == 0 else { throw FileSystemError(errno) }
      (controller, terminal) = (try Descriptor(opened: one), try Descriptor(opened: other))
    } catch {
      throw SecretError(
        .io, "A terminal for the command cannot be created: \(error).",
        advice: "Check that /dev/pts is mounted, or redirect input and output.")
    }
    for end in [controller, terminal] { _ = fcntl(end.number, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(controller.number, F_SETFL, O_RDWR | O_NONBLOCK)
    if var settings { tcsetattr(terminal.number, TCSANOW, &settings) }
    if var size { _ = ioctl(controller.number, UInt(TIOCSWINSZ), &size) }
    return (controller, terminal)
  }
}
