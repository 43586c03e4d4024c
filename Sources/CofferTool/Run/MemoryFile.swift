internal import CLinux
internal import Coffer
internal import CofferSystem
internal import Glibc

/// A file in memory without a name, which only its owner can read and nobody can change. The kernel removes
/// it when the last process that has it open ends.
struct MemoryFile: ~Copyable {
  private let descriptor: Int32

  /// Throws `.unsupported` if the system does not provide files in memory.
  init(_ value: borrowing SecretBytes) throws(SecretError) {
    descriptor = coffer_memfd("secret")
    if descriptor < 0 {
      let code = errno
      throw SecretError(
        .unsupported, "A file in memory cannot be created: \(FileSystemError(code)).",
        advice: "Use --set instead of --file.")
    }
    do throws(SecretError) {
      try value.withBytes { bytes throws(SecretError) in
        try writeAll(bytes, to: descriptor, named: "a file in memory")
      }
      let (addSeals, allSeals): (Int32, Int32) = (1033, 0xF)  // glibc declares them only for _GNU_SOURCE
      guard fchmod(descriptor, 0o400) == 0, fcntl(descriptor, addSeals, allSeals) == 0 else {
        throw SecretError(.io, "A file in memory cannot be made read-only: \(FileSystemError(errno)).")
      }
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Lets the programs that this process executes or starts inherit the file, and returns its descriptor in them: at
  /// least 20, because shells use the numbers up to 9. Throws `.io`.
  consuming func inherited() throws(SecretError) -> Int32 {
    let copy = fcntl(descriptor, F_DUPFD, 20)
    if copy < 0 {
      throw SecretError(.io, "A file in memory cannot be passed to the command: \(FileSystemError(errno)).")
    }
    return copy
  }
}
