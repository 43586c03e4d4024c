internal import CLinux
internal import CSodium

/// The copies of a secret that a computation leaves outside guarded memory: in the processor's registers, and below the
/// stack pointer. From there they could get into swap space, into a core dump, and into the stack frames of signal
/// handlers and the dynamic linker. Only this type clears them. Thread-safe.
package enum Residue {
  /// Bytes. Argon2 uses the most stack of libsodium's functions: 6,900 bytes, measured with 1.0.18.
  /// `Tests/System/stops` fails if a secret is left deeper in the stack.
  private static let stackSize = 16_384

  /// Clears the registers through which memory is copied. ``SecretBytes`` does so after each access to its bytes.
  static func clearRegisters() { coffer_clear_vector_registers() }

  /// Clears the registers and wipes the stack below the caller. Call this after each call of libsodium that works on a
  /// secret: libsodium wipes the state of its functions, but not the copies that the compiler saved.
  @inline(never)
  package static func clear() {
    sodium_stackzero(stackSize)
    coffer_clear_vector_registers()
  }
}
