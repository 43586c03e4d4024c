internal import Coffer
internal import CofferSystem
internal import Glibc

/// What `run --redact` passes to the relay of the command's output, in a file in memory: the command's environment,
/// and which of its values to redact.
///
/// The relay is this program, executed anew: it has neither the vault's key nor a variable that opens the vault, no
/// threads of a backend, and its own environment contains no value.
///
/// The file has the redactions, an empty text, and the environment. Each text ends with a NUL.
struct CommandLaunch: ~Copyable {
  let environment: CommandEnvironment
  private let redactions: [Redaction]

  /// A variable whose value is redacted.
  struct Redaction {
    let variable: String
    /// Whether the variable has the path of a file with the value.
    let isFile: Bool

    init(of variable: String, isFile: Bool = false) { (self.variable, self.isFile) = (variable, isFile) }

    fileprivate var text: String { variable + (isFile ? "=" : "") }

    fileprivate init(parsing text: UnsafeRawBufferPointer.SubSequence) {
      let text = String(decoding: text, as: UTF8.self)
      self.init(of: text.filter { $0 != "=" }, isFile: text.hasSuffix("="))
    }
  }

  init(_ environment: consuming CommandEnvironment, redacting redactions: [Redaction]) {
    self.environment = environment
    self.redactions = redactions
  }

  /// Reads what ``inherited()`` wrote. Programs that this process executes do not inherit the file.
  init(inherited descriptor: Int32) throws {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let text = try Self.contents(of: descriptor)
    let end = text.withBytes { bytes in
      bytes.indices.first { bytes[$0] == 0 && ($0 == 0 || bytes[$0 - 1] == 0) }
    }
    guard let end else { throw Self.damaged }
    let redactions = text.withBytes { bytes in
      bytes.extracting(first: end).withUnsafeBytes { $0.split(separator: 0).map { Redaction(parsing: $0) } }
    }
    let environment = text.withBytes { SecretBytes(copying: $0.extracting((end + 1)...)) }
    self.init(CommandEnvironment(environment), redacting: redactions)
  }

  /// Writes the file, and returns a descriptor of it that the next program inherits.
  borrowing func inherited() throws(SecretError) -> Int32 {
    let names = redactions.map { $0.text + "\0" }.joined() + "\0"
    let text = SecretWriter.bytes(capacity: names.utf8.count + environment.bytes.count) { writer in
      writer.append(names)
      writer.append(environment.bytes)
    }
    return try MemoryFile.inherited(text)
  }

  /// What to redact.
  borrowing func patterns() throws -> RedactionPatterns {
    var values: [(variable: String, value: SharedSecret)] = []
    for redaction in redactions {
      guard let text = environment.value(of: redaction.variable) else { continue }
      let value = redaction.isFile ? try ValueInput.read(file: text.string()) : text
      values.append((redaction.variable, SharedSecret(value)))
    }
    return RedactionPatterns(values)
  }

  private static func contents(of file: Int32) throws -> SecretBytes {
    guard lseek(file, 0, SEEK_SET) == 0,
      let bytes = try readToEnd(of: file, named: "a file in memory", limit: Int(Int32.max))
    else { throw damaged }
    return bytes
  }

  private static var damaged: Failure {
    Failure(.internalError, "The command's environment is not as it was written. Report this.")
  }
}
