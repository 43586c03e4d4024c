internal import CLinux
internal import Coffer
internal import CofferSystem
internal import Glibc

/// A file in memory without a name, which only its owner can read and nobody can change. The kernel removes
/// it when the last process that has it open ends.
enum MemoryFile {
  /// Creates a file that the programs that this process executes or starts inherit. Returns its descriptor in them: at
  /// least 20, because shells use the numbers up to 9.
  ///
  /// Throws `.unsupported` if the system does not provide files in memory, and `.io`.
  static func inherited(_ value: borrowing SecretBytes) throws(SecretError) -> Int32 {
    let file: Descriptor
    do throws(FileSystemError) { file = try Descriptor(opened: coffer_memfd("secret")) } catch {
      throw SecretError(
        .unsupported, "A file in memory cannot be created: \(error).", advice: "Leave out --redact.")
    }
    defer { withExtendedLifetime(file) {} }
    try value.withBytes { bytes throws(SecretError) in
      try writeAll(bytes, to: file.number, named: "a file in memory")
    }
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
}
