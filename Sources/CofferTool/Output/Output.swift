internal import Coffer
internal import FoundationEssentials
internal import Glibc

/// One of the process's own streams. Values go to ``standard``; everything else that is not asked-for output
/// goes to ``messages``. Nothing is buffered, so nothing can be lost at exit.
struct Output {
  let descriptor: Int32
  let name: String

  static let standard = Output(descriptor: STDOUT_FILENO, name: "standard output")
  static let messages = Output(descriptor: STDERR_FILENO, name: "standard error")

  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// Whether both lead to the same file, pipe or terminal.
  func isSameFile(as other: Output) -> Bool {
    var (first, second) = (stat(), stat())
    return fstat(descriptor, &first) == 0 && fstat(other.descriptor, &second) == 0
      && first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// A line whose control characters are spelt out where a person reads it, and verbatim where a program
  /// does.
  func line(_ text: String) throws(SecretError) {
    try write((isTerminal ? text.printable : text) + "\n")
  }

  func write(_ text: String) throws(SecretError) {
    try write(text.utf8.span)
  }

  func write(_ secret: borrowing SecretBytes) throws(SecretError) {
    try secret.withBytes { bytes throws(SecretError) in try write(bytes) }
  }

  /// Writes all of `bytes`, or throws `.io`.
  func write(_ bytes: Span<UInt8>) throws(SecretError) {
    try writeAll(bytes, to: descriptor, named: name)
  }

  /// Pretty-printed JSON with sorted keys and times in ISO 8601. Characters that a terminal might obey are
  /// escaped everywhere, which JSON allows.
  func json(_ value: some Encodable) throws { try json(value, [.prettyPrinted]) }

  /// The same on one line.
  func jsonLine(_ value: some Encodable) throws { try json(value, []) }

  private func json(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting.union([.sortedKeys, .withoutEscapingSlashes])
    encoder.dateEncodingStrategy = .iso8601
    var text = ""
    for scalar in String(decoding: try encoder.encode(value), as: UTF8.self).unicodeScalars {
      if scalar.isTerminalControl && scalar != "\n" {
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    try write(text + "\n")
  }
}

/// Tells a person something, on standard error. That it cannot be said is no reason to fail.
func note(_ text: String) {
  do throws(SecretError) {
    try Output.messages.write(text.printable + "\n")
  } catch {}
}

/// Writes all of `bytes`, however many calls it takes. Throws `.io`.
func writeAll(_ bytes: Span<UInt8>, to descriptor: Int32, named name: String) throws(SecretError) {
  let failure: Int32 = bytes.withUnsafeBytes { bytes in
    var rest = bytes
    while !rest.isEmpty {
      let written = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if written >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
      } else if errno == EAGAIN {
        var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&ready, 1, -1)  // someone else made it non-blocking; its reader decides how long this takes
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }
  if failure != 0 {
    throw SecretError(.io, "Could not write to \(name): \(systemMessage(failure)).")
  }
}

/// The system's own words for an `errno`.
func systemMessage(_ code: Int32) -> String { String(cString: strerror(code)) }
