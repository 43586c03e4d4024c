internal import CSodium

/// Secret bytes in locked, undumpable, guarded memory, wiped when the last owner lets go.
///
/// It cannot be copied, encoded, compared in variable time, interpolated or printed: none of those
/// compiles. Bytes leave it only through ``withBytes(_:)`` and ``string()``, where the caller can see that
/// they do. Moving one between threads is safe, and so is reading it from several.
public struct SecretBytes: ~Copyable, @unchecked Sendable {  // the block is never written after init
  /// How many bytes.
  public let count: Int
  private let block: UnsafeMutableRawPointer
  private let origin: GuardedMemory.Origin

  /// Copies `bytes`. The original stays where it is: wipe it, or better, never have it.
  public init(copying bytes: Span<UInt8>) {
    self.init(count: bytes.count) { block in
      bytes.withUnsafeBytes { block.copyMemory(from: $0) }
    }
  }

  /// Copies the bytes of an array.
  public init(copying bytes: [UInt8]) {
    self.init(copying: bytes.span)
  }

  /// Copies the UTF-8 bytes of `string`.
  public init(copying string: String) {
    self.init(copying: string.utf8.span)
  }

  /// Makes `count` zeroed bytes and has `body` fill them in place, so that they are nowhere else first.
  public init<E: Error>(
    count: Int,
    initializing body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    self.count = count
    (block, origin) = GuardedMemory.allocate(count)
    let bytes = UnsafeMutableRawBufferPointer(start: block, count: count)
    sodium_memzero(block, count)
    try body(bytes)
  }

  deinit {
    GuardedMemory.deallocate(block, count: count, origin: origin)
  }

  /// Whether all memory that this process has had for secrets until now is locked, so that none of it can have been
  /// written to swap space. The system refuses beyond `RLIMIT_MEMLOCK`; secrets are then kept nevertheless.
  ///
  /// Makes some where there was none yet. Once `false`, it stays so. Thread-safe.
  public static var isMemoryLocked: Bool {
    _ = SecretBytes(count: 0) { _ in }
    return GuardedMemory.isLocked
  }

  /// Whether there are no bytes. An empty secret is a secret.
  public var isEmpty: Bool { count == 0 }

  /// Gives `body` the bytes for the duration of the call. The span cannot outlive it.
  public borrowing func withBytes<R: ~Copyable, E: Error>(
    _ body: (Span<UInt8>) throws(E) -> R
  ) throws(E) -> R {
    let bytes = UnsafeRawBufferPointer(start: block, count: count)
    return try body(Span(_unsafeBytes: bytes))
  }

  /// A second copy, in guarded memory of its own.
  public borrowing func copy() -> SecretBytes {
    withBytes { SecretBytes(copying: $0) }
  }

  /// Whether both hold the same bytes, in time that depends on the lengths alone.
  public borrowing func isEqual(to other: borrowing SecretBytes) -> Bool {
    count == other.count && sodium_memcmp(block, other.block, count) == 0
  }

  /// The bytes as text, outside guarded memory: a Swift `String` is neither locked nor wiped.
  /// Throws `.decodingFailed` where they are not UTF-8.
  public borrowing func string() throws(SecretError) -> String {
    let text = withBytes { bytes in
      bytes.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
    }
    guard let text else {
      throw SecretError(
        .decodingFailed,
        "The secret is not UTF-8 text.",
        advice: "Read it as bytes instead."
      )
    }
    return text
  }
}
