internal import CLinux
internal import Coffer
internal import Glibc

/// A file in memory that has no name, readable by its owner alone and gone with the last process that has it
/// open.
struct MemoryFile: ~Copyable {
  private let descriptor: Int32

  /// Throws `.unsupported` where the system has none.
  init(_ value: borrowing SecretBytes) throws(SecretError) {
    descriptor = coffer_memfd("secret")
    if descriptor < 0 {
      let code = errno
      throw SecretError(
        .unsupported,
        "The system does not give out files in memory: \(systemMessage(code)).",
        advice: "Use --set instead."
      )
    }
    do throws(SecretError) {
      try value.withBytes { bytes throws(SecretError) in
        try writeAll(bytes, to: descriptor, named: "a file in memory")
      }
      let (addSeals, allSeals): (Int32, Int32) = (1033, 0xF)  // glibc declares them only for _GNU_SOURCE
      guard fchmod(descriptor, 0o400) == 0, fcntl(descriptor, addSeals, allSeals) == 0 else {
        throw SecretError(.io, "A file in memory cannot be closed to writers: \(systemMessage(errno)).")
      }
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Hands the file on to the programs that this process executes or starts. Returns its path there. Shells
  /// use the numbers up to 9 for themselves, so it gets a higher one.
  consuming func inherited() throws(SecretError) -> String {
    let copy = fcntl(descriptor, F_DUPFD, 20)
    if copy < 0 { throw SecretError(.io, "A file in memory cannot be kept: \(systemMessage(errno)).") }
    return "/proc/self/fd/\(copy)"
  }
}
