internal import Coffer

/// Appends bytes to secret bytes in guarded memory. Traps if there are more than its capacity.
struct SecretWriter {
  private let block: UnsafeMutableRawBufferPointer
  private var count = 0

  /// Returns the bytes that `body` appends: at most `capacity`.
  static func bytes(capacity: Int, _ body: (inout SecretWriter) -> Void) -> SecretBytes {
    let bytes = SecretBytes(capacity: capacity) { block in
      var writer = SecretWriter(block: block)
      body(&writer)
      return writer.count
    }
    // Unused capacity would take the place of other values in locked memory.
    return bytes.count == capacity ? bytes : bytes.prefix(bytes.count)
  }

  static func joined(_ parts: [SecretBytes]) -> SecretBytes {
    bytes(capacity: parts.reduce(0) { $0 + $1.count }) { writer in
      for part in parts { writer.append(part) }
    }
  }

  private init(block: UnsafeMutableRawBufferPointer) { self.block = block }

  mutating func append(_ byte: UInt8) {
    block[count] = byte
    count += 1
  }

  mutating func append(_ bytes: Span<UInt8>) {
    bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: block[count...]).copyMemory(from: $0) }
    count += bytes.count
  }

  mutating func append(_ secret: SecretBytes) {
    secret.withBytes { append($0) }
  }

  mutating func append(_ text: String) { append(text.utf8.span) }
}
