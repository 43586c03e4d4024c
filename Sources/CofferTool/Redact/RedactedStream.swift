internal import CofferSystem
internal import CofferLibc

/// A stream of a command's output through the redactor. Neither reading nor writing waits. Not thread-safe.
final class RedactedStream {
  /// Where the command's output arrives; `nil` after its end.
  private(set) var source: Descriptor?
  let destination: Int32
  private var redactor: OutputRedactor
  /// The redacted output that is not yet written.
  private var pending: [UInt8] = []
  /// When the beginning of a value is to be shown, unless more output arrives.
  private(set) var pauseEnds: ContinuousClock.Instant?
  /// Why the output could not be written.
  private(set) var failure: Int32?

  init(from source: Descriptor, to destination: Int32, _ patterns: RedactionPatterns) {
    (self.source, self.destination) = (source, destination)
    redactor = OutputRedactor(patterns)
  }

  /// The descriptor to read when it is readable. `nil` while much output is pending.
  var readable: Int32? { pending.count < 65_536 ? source?.number : nil }
  var wantsToWrite: Bool { !pending.isEmpty }
  var isFinished: Bool { source == nil && pending.isEmpty }

  /// Reads once. The end of a terminal's output is EIO.
  func read() {
    guard let source else { return }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = CofferLibc.read(source.number, &buffer, buffer.count)
    if count > 0 {
      pending += redactor.redact(buffer[..<count])
      pauseEnds = redactor.isHolding ? .now + .milliseconds(50) : nil
    } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
      end()
    }
  }

  /// Shows the beginning of a value, if the output has paused for long enough.
  func showBeginning() {
    guard let pauseEnds, pauseEnds <= .now else { return }
    self.pauseEnds = nil
    pending += redactor.showBeginning()
  }

  /// Writes once: up to PIPE_BUF bytes, for which write(2) does not wait if poll(2) reports that there is room.
  func write() {
    guard !pending.isEmpty else { return }
    let count = CofferLibc.write(destination, pending, min(pending.count, 4096))
    if count >= 0 {
      pending.removeFirst(count)
    } else if errno != EINTR && errno != EAGAIN {
      // A reader that has left is not an error. The command's next write fails as well.
      if errno != EPIPE && errno != EIO { failure = errno }
      abandon()
    }
  }

  /// Shows the rest, and reads no more.
  func end() {
    guard source.take() != nil else { return }
    pauseEnds = nil
    pending += redactor.finish()
  }

  /// Drops the rest, and reads no more.
  func abandon() {
    source = nil
    pauseEnds = nil
    pending = []
  }
}
