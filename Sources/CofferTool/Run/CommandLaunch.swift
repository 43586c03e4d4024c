internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// What `run --redact` passes to the relay of the command's output, in a file in memory: the command's environment, and
/// which of its values to redact.
///
/// The relay is this program, executed anew. It has neither the vault's key nor a variable that opens the vault, and no
/// threads of a backend. Its own environment contains no value.
///
/// The file has the redactions, an empty text, and the environment. Each text ends with a NUL.
struct CommandLaunch: ~Copyable {
  let environment: CommandEnvironment
  private let redactions: [Redaction]

  /// A variable whose value is redacted, and whether it has the path of a file with the value.
  typealias Redaction = (variable: String, isFile: Bool)

  /// Reads the file that ``write(_:redacting:)`` wrote.
  init(inherited descriptor: Int32) throws {
    guard lseek(descriptor, 0, SEEK_SET) == 0,
      let text = try readToEnd(of: descriptor, named: "a file in memory", limit: Int(Int32.max)),
      let end = text.withBytes({ bytes in
        bytes.indices.first { bytes[$0] == 0 && ($0 == 0 || bytes[$0 - 1] == 0) }
      })
    else {
      throw Failure(.internalError, "The command's environment is not as it was written. Report this.")
    }
    redactions = text.withBytes { bytes in
      bytes.extracting(first: end).withUnsafeBytes { names in
        names.split(separator: 0).map { name in
          let variable = String(decoding: name.drop { $0 == UInt8(ascii: "=") }, as: UTF8.self)
          return (variable, isFile: name.first == UInt8(ascii: "="))
        }
      }
    }
    environment = CommandEnvironment(text.withBytes { SecretBytes($0.extracting((end + 1)...)) })
  }

  /// Writes a file without a name, which only its owner can read and nobody can change. The kernel removes it when the
  /// last process that has it open ends.
  ///
  /// Returns its descriptor in the programs that this process executes or starts: at least 20, because shells use the
  /// numbers up to 9. Throws `.unsupported` if the system does not provide files in memory, and `.io`.
  static func write(
    _ environment: borrowing CommandEnvironment, redacting redactions: [Redaction]
  ) throws(SecretError) -> Int32 {
    let names = redactions.map { ($0.isFile ? "=" : "") + $0.variable + "\0" }.joined() + "\0"
    let text = SecretWriter.joined([SecretBytes(names), environment.bytes])
    let file: Descriptor
    do throws(FileSystemError) { file = try Descriptor(opened: coffer_memfd("secret")) } catch {
      throw SecretError(.unsupported, "A file in memory cannot be created: \(error).", advice: "Leave out --redact.")
    }
    defer { withExtendedLifetime(file) {} }
    try Output(descriptor: file.number, name: "a file in memory").write(text)
    let (addSeals, allSeals): (Int32, Int32) = (1033, 0xF)  // glibc declares them only for _GNU_SOURCE
    guard fchmod(file.number, 0o400) == 0, fcntl(file.number, addSeals, allSeals) == 0 else {
      throw SecretError(.io, "A file in memory cannot be made read-only: \(FileSystemError(errno)).")
    }
    let copy = fcntl(file.number, F_DUPFD, 20)
    if copy < 0 {
      throw SecretError(.io, "A file in memory cannot be passed to the command: \(FileSystemError(errno)).")
    }
    return copy
  }

  borrowing func patterns() throws -> RedactionPatterns {
    let found = environment.values(of: Set(redactions.map(\.variable)))
    let values = try redactions.compactMap { variable, isFile in
      try found[variable].map { text in
        (variable, isFile ? try ValueInput.read(file: text.string()) : text)
      }
    }
    return RedactionPatterns(values)
  }
}
