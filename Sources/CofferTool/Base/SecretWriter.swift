internal import Coffer

/// Appends bytes to secret bytes in guarded memory.
struct SecretWriter {
  /// `nil` while the bytes are only counted.
  private let block: UnsafeMutableRawBufferPointer?
  private var count = 0

  /// Returns the bytes that `body` appends. It runs twice, and must append the same: once to count the bytes.
  static func bytes(_ body: (inout SecretWriter) -> Void) -> SecretBytes {
    var counter = SecretWriter(block: nil)
    body(&counter)
    return bytes(capacity: counter.count, body)
  }

  /// Returns the bytes that `body` appends. It runs once. Traps if they are more than `capacity`.
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
    bytes { writer in for part in parts { writer.append(part) } }
  }

  private init(block: UnsafeMutableRawBufferPointer?) { self.block = block }

  mutating func append(_ byte: UInt8) {
    if let block { block[count] = byte }
    count += 1
  }

  mutating func append(_ bytes: Span<UInt8>) {
    if let block {
      bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: block[count...]).copyMemory(from: $0) }
    }
    count += bytes.count
  }

  mutating func append(_ secret: SecretBytes) {
    secret.withBytes { append($0) }
  }

  mutating func append(_ text: String) { append(text.utf8.span) }

  /// Appends UTF-8 as a JSON string, with escapes for what a terminal would obey, reorder or hide.
  mutating func appendJSON(_ text: UTF8Span) {
    append("\"")
    var scalars = text.makeUnicodeScalarIterator()
    while let scalar = scalars.next() {
      append(scalar.escapeInJSON ?? String(scalar))
    }
    append("\"")
  }
}
