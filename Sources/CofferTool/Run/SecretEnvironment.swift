internal import Coffer

/// The variables of a command's environment, in guarded memory until all of them are known.
struct SecretEnvironment: ~Copyable {
  /// The variables that `--pristine` keeps.
  static let pristine = ["PATH", "HOME", "TERM", "LANG"]

  /// A variable's name, and its value followed by a NUL.
  private var entries: [(variable: String, text: SharedSecret)] = []
  /// The values to redact in the command's output.
  private(set) var redactions: [CommandLaunch.Redaction] = []
  /// The variables whose values are too short to be redacted.
  private(set) var unredacted: [String] = []

  /// Adds a variable that holds the value. Throws if the value contains a NUL.
  mutating func add(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment) throws(Failure) {
    let text = value.withBytes { bytes -> SecretBytes? in
      for index in bytes.indices where bytes[index] == 0 { return nil }
      return Self.terminated(bytes)
    }
    guard let text else {
      throw .usage(
        """
        The secret “\(assignment.identifier.account)” contains a NUL, which an environment variable cannot hold. \
        Leave it out, or pass it in a file with --file.
        """
      )
    }
    entries.append((assignment.variable, SharedSecret(text)))
    addRedaction(of: value, CommandLaunch.Redaction(of: assignment.variable))
  }

  /// Adds a variable that holds the path of a file in memory with the value.
  mutating func addFile(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment)
    throws(SecretError)
  {
    let file = try MemoryFile.inherited(value)
    addPlain("/proc/self/fd/\(file)", as: assignment.variable)
    addRedaction(of: value, CommandLaunch.Redaction(of: assignment.variable, in: file))
  }

  /// Adds a variable whose value is not secret.
  mutating func addPlain(_ value: String, as variable: String) {
    entries.append((variable, SharedSecret(Self.terminated(value.utf8.span))))
  }

  private static func terminated(_ bytes: Span<UInt8>) -> SecretBytes {
    SecretWriter.bytes(capacity: bytes.count + 1) { writer in
      writer.append(bytes)
      writer.append(0)
    }
  }

  private mutating func addRedaction(of value: borrowing SecretBytes, _ redaction: CommandLaunch.Redaction) {
    if OutputRedactor.canRedact(value) {
      redactions.append(redaction)
    } else if !value.isEmpty {
      unredacted.append(redaction.variable)
    }
  }

  /// The command's environment: this process's, from which ``Environment/concealKeys()`` has removed what opens the
  /// vault, and these variables.
  func environment(isPristine: Bool) -> CommandEnvironment {
    let replaced = Set(entries.map(\.variable))
    return CommandEnvironment(
      inheriting: { !replaced.contains($0) && (!isPristine || Self.pristine.contains($0)) }, adding: entries)
  }
}
