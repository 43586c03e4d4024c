internal import CSodium

/// Secret bytes in guarded memory, which is locked and excluded from core dumps. The bytes are wiped when the last
/// reference is released. Thread-safe.
///
/// The bytes are accessible only through ``withBytes(_:)`` and ``string()``: descriptions do not show them, and the
/// type has no `==` and is not `Codable`.
public final class SecretBytes: @unchecked Sendable {  // the block is not written after init
  /// The number of bytes.
  public let count: Int
  private let block: UnsafeMutableRawPointer
  private let capacity: Int
  private let origin: GuardedMemory.Origin

  /// Copies `bytes`. The original stays in memory unless the caller wipes it.
  public convenience init(_ bytes: Span<UInt8>) {
    self.init(count: bytes.count) { block in
      bytes.withUnsafeBytes { block.copyMemory(from: $0) }
    }
  }

  /// Copies the bytes of an array, of `Data` or of another sequence. The original stays in memory unless the caller
  /// wipes it.
  public convenience init(_ bytes: some Sequence<UInt8>) {
    if let count = bytes.withContiguousStorageIfAvailable({ $0.count }) {
      self.init(count: count) { block in
        bytes.withContiguousStorageIfAvailable { block.copyMemory(from: UnsafeRawBufferPointer($0)) }
      }
    } else {
      var copy = Array(bytes)
      self.init(copy.span)
      sodium_memzero(&copy, copy.count)
    }
  }

  /// Copies the UTF-8 bytes of `text`.
  public convenience init(_ text: String) { self.init(text.utf8.span) }

  /// Creates `count` zeroed bytes, which `body` fills in place, so that there is no other copy. Throws what `body`
  /// throws.
  public convenience init<E: Error>(
    count: Int, initializingWith body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    try self.init(capacity: count) { bytes throws(E) in
      try body(bytes)
      return count
    }
  }

  /// Creates at most `capacity` bytes, which `body` fills in place. `body` returns their number. Throws what `body`
  /// throws.
  package init<E: Error>(
    capacity: Int, initializingWith body: (UnsafeMutableRawBufferPointer) throws(E) -> Int
  ) throws(E) {
    let (block, origin) = GuardedMemory.allocate(capacity)
    sodium_memzero(block, capacity)
    defer { Residue.clearRegisters() }
    do throws(E) { count = try body(UnsafeMutableRawBufferPointer(start: block, count: capacity)) } catch {
      GuardedMemory.deallocate(block, count: capacity, origin: origin)
      throw error
    }
    (self.block, self.capacity, self.origin) = (block, capacity, origin)
  }

  deinit { GuardedMemory.deallocate(block, count: capacity, origin: origin) }

  /// Whether all memory that this process has used for secrets is locked, so that none of it was written to swap space.
  /// The system locks at most `RLIMIT_MEMLOCK` bytes; secrets beyond that are kept in memory without a lock.
  ///
  /// Once `false`, the property stays `false`. The first access allocates guarded memory. Thread-safe.
  package static var isMemoryLocked: Bool {
    _ = SecretBytes(count: 0) { _ in }
    return GuardedMemory.isLocked
  }

  /// Whether ``count`` is 0. An empty secret is not a missing one.
  public var isEmpty: Bool { count == 0 }

  /// Calls `body` with the bytes, and throws what `body` throws. The span cannot outlive the call.
  public func withBytes<R: ~Copyable, E: Error>(_ body: (Span<UInt8>) throws(E) -> R) throws(E) -> R {
    let bytes = UnsafeRawBufferPointer(start: block, count: count)
    defer { Residue.clearRegisters() }
    return try body(Span(_unsafeBytes: bytes))
  }

  /// The bytes of both, one after the other.
  package convenience init(joining first: Span<UInt8>, _ second: Span<UInt8>) {
    self.init(count: first.count + second.count) { both in
      first.withUnsafeBytes { both.copyMemory(from: $0) }
      let rest = UnsafeMutableRawBufferPointer(rebasing: both[first.count...])
      second.withUnsafeBytes { rest.copyMemory(from: $0) }
    }
  }

  /// The first `length` bytes, in guarded memory of their own.
  package func prefix(_ length: Int) -> SecretBytes {
    withBytes { SecretBytes($0.extracting(first: length)) }
  }

  /// Whether both values have the same bytes. The time depends only on the lengths.
  public func isEqual(to other: SecretBytes) -> Bool {
    defer { Residue.clearRegisters() }
    return count == other.count && sodium_memcmp(block, other.block, count) == 0
  }

  /// Returns the bytes as text. A `String` is outside guarded memory: it is neither locked nor wiped. Throws
  /// `.decodingFailed` if the bytes are not UTF-8.
  public func string() throws(SecretError) -> String {
    if let text = withBytes({ $0.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) } }) { return text }
    throw SecretError(.decodingFailed, "The secret is not UTF-8 text.", advice: "Read it as bytes instead.")
  }
}

extension SecretBytes: CustomStringConvertible, CustomReflectable {
  /// A text without the bytes and their number.
  public var description: String { "SecretBytes(redacted)" }
  /// A mirror without the bytes.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Span<UInt8> {
  package var isUTF8: Bool {
    do { _ = try UTF8Span(validating: self) } catch { return false }
    return true
  }

  /// Whether the bytes begin with those of `text`.
  package func starts(with text: String) -> Bool {
    text.utf8.count <= count && zip(text.utf8, indices).allSatisfy { self[$1] == $0 }
  }

  package func firstIndex(of byte: UInt8) -> Int? { indices.first { self[$0] == byte } }

  package func contains(_ byte: UInt8) -> Bool { firstIndex(of: byte) != nil }
}
