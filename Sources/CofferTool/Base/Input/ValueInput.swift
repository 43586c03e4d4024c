internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The source of a value: a file, a pipe or a prompt, but never an argument.
///
/// Files, and pipes with `--verbatim`, are read exactly. Otherwise one final LF from a pipe is dropped if it is the
/// only LF, so that `echo` works as intended and PEM and JSON stay intact. On a terminal, the value is entered twice.
struct ValueInput {
  /// A file's path, or `-` for standard input.
  var file: String?
  var verbatim = false

  /// Whether ``read(for:)`` prompts.
  var isPrompt: Bool { file == nil && isatty(STDIN_FILENO) == 1 }

  func read(for name: String) throws -> SecretBytes {
    if let file { return try Self.read(file: file) }
    guard isPrompt else {
      let bytes = try Self.readStandardInput()
      return verbatim ? bytes : Self.droppingOnlyLineFeed(bytes)
    }
    guard BackendConfiguration.current().canPrompt else {
      throw Failure.usage(
        "There is no value: standard input is a terminal, and prompts are disabled. Use a pipe or --from-file.")
    }
    let terminal = try Terminal()
    let first = try terminal.readLine("Value of \(name): ")
    if first.isEmpty {
      throw Failure.usage(
        "Nothing was entered.", advice: "To store an empty value: printf '' | secret set --allow-empty NAME")
    }
    let second = try terminal.readLine("Repeat the value: ")
    guard first.isEqual(to: second) else { throw Failure.usage("The two entries differ.", advice: "Try again.") }
    return first
  }

  /// Returns the result of `prompt` if standard input is a terminal. Otherwise reads it, and drops a final LF that is
  /// the only one. `what` names the value in the failure if no prompt is possible.
  static func read(_ what: String, prompt: () throws -> SecretBytes) throws -> SecretBytes {
    if isatty(STDIN_FILENO) != 1 { return try droppingOnlyLineFeed(readStandardInput()) }
    guard BackendConfiguration.current().canPrompt else {
      throw Failure.usage("There is no \(what), and a prompt is not possible. Use a pipe.")
    }
    return try prompt()
  }

  static func droppingOnlyLineFeed(_ secret: SecretBytes) -> SecretBytes {
    let firstLineFeed = secret.withBytes { $0.firstIndex(of: UInt8(ascii: "\n")) }
    return firstLineFeed == secret.count - 1 ? secret.prefix(secret.count - 1) : secret
  }

  /// The bytes of the file at `path`, or of standard input for `-`. Throws ``ExitStatus/noInput`` if there is no file.
  static func read(file path: String) throws -> SecretBytes {
    if path == "-" { return try readStandardInput() }
    let file: Descriptor
    do throws(FileSystemError) { file = try Descriptor(opening: path, O_RDONLY | O_NOCTTY) } catch {
      if [ENOENT, ENOTDIR].contains(error.number) {
        throw Failure(.noInput, "There is no file \(path). Check the path.")
      }
      throw SecretError.system(error, "The file \(path) cannot be opened")
    }
    defer { withExtendedLifetime(file) {} }
    return try read(file.number, named: path)
  }

  static func readStandardInput() throws(SecretError) -> SecretBytes {
    try read(STDIN_FILENO, named: "standard input")
  }

  /// Reads to the end, into guarded memory only. Throws `.tooLarge` above the largest value of a vault.
  private static func read(_ descriptor: Int32, named name: String) throws(SecretError) -> SecretBytes {
    let limit = VaultBackend.maximumSecretSize
    guard let bytes = try readToEnd(of: descriptor, named: name, limit: limit) else {
      throw SecretError(
        .tooLarge, "The value is longer than \(limit) bytes, the maximum of every backend.",
        advice: "Keep large data in a file, and store its key here.")
    }
    return bytes
  }
}
