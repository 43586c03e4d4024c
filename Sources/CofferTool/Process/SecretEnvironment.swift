internal import Coffer
internal import CofferSystem
internal import Glibc

/// The variables of a command's environment, in guarded memory until all of them are known.
struct SecretEnvironment: ~Copyable {
  /// The variables that `--pristine` keeps.
  static let pristine = ["PATH", "HOME", "TERM", "LANG"]

  /// A variable's name, and its value followed by a NUL.
  private var entries: [(variable: String, text: SharedSecret)] = []
  /// The patterns that redact the values in the command's output.
  private(set) var patterns: [OutputRedactor.Pattern] = []
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
    addPatterns(for: value, assignment.variable)
  }

  /// Adds a variable that holds the path of a file in memory with the value.
  mutating func addFile(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment)
    throws(SecretError)
  {
    addPlain(try MemoryFile(value).inherited(), as: assignment.variable)
    addPatterns(for: value, assignment.variable)
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

  private mutating func addPatterns(for value: borrowing SecretBytes, _ variable: String) {
    let found = OutputRedactor.patterns(for: value, named: variable)
    if found.isEmpty && !value.isEmpty { unredacted.append(variable) }
    patterns += found
  }

  /// Changes this process's environment into the command's.
  consuming func apply(isPristine: Bool) throws(SecretError) {
    Self.closePassphraseDescriptorOnExecution()
    if isPristine {
      let kept = Self.pristine.map { ($0, getenv($0).flatMap { strdup($0) }) }
      clearenv()
      for case (let name, let value?) in kept {
        setenv(name, value, 1)
        free(value)
      }
    }
    for entry in entries {
      let result = entry.text.bytes.withBytes { bytes in
        bytes.withUnsafeBytes { bytes in
          guard let text = bytes.bindMemory(to: CChar.self).baseAddress else { return Int32(-1) }
          return setenv(entry.variable, text, 1)
        }
      }
      if result != 0 {
        throw SecretError(.io, "The environment cannot be changed: \(systemMessage(errno)).")
      }
    }
  }

  /// Hides the descriptor that the passphrase came from: if it is a file, the command could read it again.
  private static func closePassphraseDescriptorOnExecution() {
    guard let text = CofferConfiguration.current().given("COFFER_PASSPHRASE_FD"),
      let descriptor = Int32(text),
      descriptor > STDERR_FILENO
    else { return }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)  // fails if the descriptor is closed already
  }
}
