internal import Coffer
internal import Glibc

/// Values on their way into the environment of a command, in guarded memory until all of them are there.
struct SecretEnvironment: ~Copyable {
  /// What `--pristine` keeps of the environment.
  static let pristine = ["PATH", "HOME", "TERM", "LANG"]

  private final class Entry {
    let variable: String
    let text: SecretBytes  // with a NUL behind it
    init(_ variable: String, _ text: consuming SecretBytes) {
      self.variable = variable
      self.text = text
    }
  }
  private var entries: [Entry] = []
  /// What hides the values in the command's output.
  private(set) var patterns: [OutputRedactor.Pattern] = []
  /// The variables whose values are too short to be hidden.
  private(set) var unmasked: [String] = []

  /// A variable of the value. Throws where the value cannot be in an environment.
  mutating func add(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment) throws(Failure) {
    let text = value.withBytes { bytes -> SecretBytes? in
      for index in bytes.indices where bytes[index] == 0 { return nil }
      return Self.terminated(bytes)
    }
    guard let text else {
      throw .usage(
        """
        The secret “\(assignment.identifier.account)” has a NUL in it, which no environment can hold. \
        Leave it out, or give it to the command by a file.
        """
      )
    }
    entries.append(Entry(assignment.variable, text))
    mask(value, assignment.variable)
  }

  /// A variable of the path of a file in memory that holds the value.
  mutating func addFile(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment)
    throws(SecretError)
  {
    let path = try MemoryFile(value).inherited()
    entries.append(Entry(assignment.variable, Self.terminated(path.utf8.span)))
    mask(value, assignment.variable)
  }

  /// A variable that is no secret.
  mutating func addPlain(_ value: String, as variable: String) {
    entries.append(Entry(variable, Self.terminated(value.utf8.span)))
  }

  private static func terminated(_ bytes: Span<UInt8>) -> SecretBytes {
    SecretBytes(count: bytes.count + 1) { block in
      bytes.withUnsafeBytes { block.copyMemory(from: $0) }
    }
  }

  private mutating func mask(_ value: borrowing SecretBytes, _ variable: String) {
    let found = OutputRedactor.patterns(for: value, named: variable)
    if found.isEmpty && !value.isEmpty { unmasked.append(variable) }
    patterns += found
  }

  /// Changes this process's environment into the command's.
  consuming func apply(isPristine: Bool) throws(SecretError) {
    Self.hidePassphraseDescriptor()
    if isPristine {
      let kept = Self.pristine.map { ($0, getenv($0).flatMap { strdup($0) }) }
      clearenv()
      for case (let name, let value?) in kept {
        setenv(name, value, 1)
        free(value)
      }
    }
    for variable in CofferConfiguration.keyVariables { unsetenv(variable) }
    for entry in entries {
      let result = entry.text.withBytes { bytes in
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

  /// A file that a passphrase was read from could be read again through the same descriptor.
  private static func hidePassphraseDescriptor() {
    guard let text = Environment.value("COFFER_PASSPHRASE_FD"), let descriptor = Int32(text),
      descriptor > STDERR_FILENO
    else { return }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)  // it may be closed already
  }
}
