internal import CLinux
internal import Coffer
internal import CofferSystem
internal import FoundationEssentials
internal import CofferLibc
internal import Synchronization

/// One of this process's output streams. Requested output goes to ``standard``, messages to ``messages``. Nothing is
/// buffered, so nothing is lost at exit.
struct Output {
  let descriptor: Int32
  let name: String

  static let standard = Output(descriptor: STDOUT_FILENO, name: "standard output")
  static let messages = Output(descriptor: STDERR_FILENO, name: "standard error")

  /// The error of ``write(_:)`` if the reader of standard output has closed the pipe.
  static let closedPipe = SecretError(.io, "Could not write to standard output: \(FileSystemError(EPIPE)).")

  var isTerminal: Bool { isatty(descriptor) == 1 }
  /// Whether it is `/dev/null`, which ``ProcessHardening`` also opens for a closed stream. Its number is that of Linux.
  var isNullDevice: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == 0x103
  }

  func isSameFile(as other: Output) -> Bool {
    var (first, second) = (stat(), stat())
    return fstat(descriptor, &first) == 0 && fstat(other.descriptor, &second) == 0
      && first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// Writes a line: with control characters escaped on a terminal, and verbatim otherwise.
  func line(_ text: String) throws(SecretError) {
    try write((isTerminal ? text.printable : text) + "\n")
  }

  func write(_ text: String) throws(SecretError) {
    try write(text.utf8.span)
  }

  func write(_ secret: SecretBytes) throws(SecretError) {
    try secret.withBytes { bytes throws(SecretError) in try write(bytes) }
  }

  /// Writes all of `bytes`, or throws `.io`.
  func write(_ bytes: Span<UInt8>) throws(SecretError) {
    try writeAll(bytes, to: descriptor, named: name)
  }

  /// Writes values verbatim. If a terminal would obey, reorder or hide some of their characters, throws a usage failure
  /// about `subject` whose message ends with `ending`. With `force`, writes them even then.
  func reveal(_ values: SecretBytes, force: Bool = false, _ subject: String, _ ending: String) throws {
    if isTerminal && !force && !values.isPlainText {
      throw Failure.usage("\(subject) contains control characters, invisible characters or binary data\(ending)")
    }
    try write(values)
  }

  /// Writes indented JSON with sorted keys and times in ISO 8601. Always escapes what a terminal would obey, reorder or
  /// hide, which JSON permits.
  func json(_ value: some Encodable) throws { try write(Self.json(value, [.prettyPrinted])) }

  func jsonLine(_ value: some Encodable) throws { try write(Self.json(value, [])) }

  static func json(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting.union([.sortedKeys, .withoutEscapingSlashes])
    encoder.dateEncodingStrategy = .iso8601
    return String(decoding: try encoder.encode(value), as: UTF8.self).printableJSON + "\n"
  }
}

/// Makes standard streams of this process refer to the null device, if there is one.
func redirectToNullDevice(_ streams: [Int32]) {
  guard let null = try? Descriptor(opening: "/dev/null", O_RDWR) else { return }
  for stream in streams { dup2(null.number, stream) }
  withExtendedLifetime(null) {}
}

private let changes = Mutex<(isChange: Bool, made: [String])>((false, []))

/// Notes that the command changes a store, in one step. A failure then says that nothing was changed, if that is so.
func willChange() { changes.withLock { $0.isChange = true } }

/// Notes what the command has changed. The message of a later failure begins with `text`.
func changed(_ text: String) { changes.withLock { $0.made.append(text) } }

/// The message of a failure that ends the command, with what the command has changed.
func finalMessage(of failure: Failure) -> String {
  let (isChange, made) = changes.withLock { $0 }
  if !made.isEmpty {
    return "\(made.joined(separator: " ")) After that, something failed, and the change stays. \(failure.message)"
  }
  return isChange ? failure.message(with: failure.effect.sentence) : failure.message
}

/// Prints an error or a warning on standard error. Hides a key, which may have been given in place of another argument.
/// A failure to print is ignored.
func note(_ text: String) {
  do throws(SecretError) { try Output.messages.write(text.withoutKeys.printable + "\n") } catch {}
}

/// Prints a message that only informs: nothing is wrong, and nobody has to act. `--quiet` leaves it out.
func inform(_ text: String) {
  if !QuietOption.isGiven { note(text) }
}
