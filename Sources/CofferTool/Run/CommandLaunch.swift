internal import Coffer
internal import CofferSystem
internal import Glibc

/// What `run --redact` passes to the relay of the command's output, in a file in memory: the command's environment,
/// and the values to redact.
///
/// The relay is this program, executed anew: it has neither the vault's key nor a variable that opens the vault, no
/// threads of a backend, and its own environment contains no value.
struct CommandLaunch: ~Copyable {
  let environment: CommandEnvironment
  let redactions: [(variable: String, value: SharedSecret)]

  /// The patterns to redact.
  var patterns: [OutputRedactor.Pattern] {
    redactions.flatMap { OutputRedactor.patterns(for: $0.value.bytes, named: $0.variable) }
  }

  init(
    _ environment: consuming CommandEnvironment,
    redacting redactions: [(variable: String, value: SharedSecret)]
  ) {
    self.environment = environment
    self.redactions = redactions
  }

  /// Reads what ``inherited()`` wrote. Programs that this process executes do not inherit the file.
  init(inherited descriptor: Int32) throws {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    guard lseek(descriptor, 0, SEEK_SET) == 0,
      let text = try readToEnd(of: descriptor, named: "the command's environment", limit: Int(Int32.max)),
      let fields = text.withBytes({ Self.fields(of: $0) }), let first = fields.first, fields.count % 2 == 1,
      first.bytes.withBytes({ $0.isEmpty || $0[$0.count - 1] == 0 })
    else { throw Failure(.internalError, "The command's environment is not as it was written. Report this.") }
    let redactions = try stride(from: 1, to: fields.count, by: 2).map { index in
      (variable: try fields[index].bytes.string(), value: fields[index + 1])
    }
    self.init(CommandEnvironment(first.bytes.copy()), redacting: redactions)
  }

  /// Writes the file, and returns a descriptor of it that the next program inherits.
  borrowing func inherited() throws -> Int32 {
    let fields =
      [SharedSecret(environment.bytes.copy())]
      + redactions.flatMap { [SharedSecret(SecretBytes(copying: $0.variable)), $0.value] }
    let text = SecretWriter.bytes(capacity: fields.reduce(0) { $0 + $1.bytes.count + 8 }) { writer in
      for field in fields {
        for shift in stride(from: 0, to: 64, by: 8) {
          writer.append(UInt8(truncatingIfNeeded: field.bytes.count >> shift))
        }
        writer.append(field.bytes)
      }
    }
    return try MemoryFile(text).inheritedDescriptor()
  }

  /// The fields, each behind its length in 8 bytes; `nil` if they do not fill the text.
  private static func fields(of text: Span<UInt8>) -> [SharedSecret]? {
    var fields: [SharedSecret] = []
    var index = 0
    while index < text.count {
      guard index + 8 <= text.count else { return nil }
      let length = (0..<8).reduce(0) { $0 | Int(text[index + $1]) << (8 * $1) }
      index += 8
      guard length >= 0, length <= text.count - index else { return nil }
      fields.append(SharedSecret(SecretBytes(copying: text.extracting(index..<index + length))))
      index += length
    }
    return fields
  }
}
