internal import Coffer

/// A key as people write it down: its text in groups, with white space that means nothing.
///
/// Hyphens do mean something: they are among the characters of a key's text.
enum RecoveryKey {
  private static let prefix = "coffer-key-v1:"
  private static let group = 6
  private static let groupsInLine = 4

  /// The prefix on a line, and then two lines of four groups of six characters.
  static func print(_ key: borrowing SecretBytes) throws(SecretError) {
    let text = VaultKey.text(of: key)
    let lines = text.withBytes { bytes in
      SecretBytes(count: prefix.utf8.count + 1 + (bytes.count - prefix.utf8.count) / group * (group + 1)) {
        block in
        var end = 0
        func append(_ byte: UInt8) {
          block[end] = byte
          end += 1
        }
        for index in 0..<prefix.utf8.count { append(bytes[index]) }
        append(UInt8(ascii: "\n"))
        for index in prefix.utf8.count..<bytes.count {
          append(bytes[index])
          let written = index - prefix.utf8.count + 1
          if written % (group * groupsInLine) == 0 {
            append(UInt8(ascii: "\n"))
          } else if written % group == 0 {
            append(UInt8(ascii: " "))
          }
        }
      }
    }
    try Output.standard.write(lines)
  }

  /// The key that was written down, with white space anywhere, and with or without the prefix. Throws
  /// `.invalidKey` where it is mistyped.
  static func parse(_ text: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    let prefix = Array(prefix.utf8)
    let packed = text.withBytes { bytes in
      func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
      var count = 0
      for index in bytes.indices where !isSpace(bytes[index]) { count += 1 }
      return SecretBytes(count: count) { block in
        var end = 0
        for index in bytes.indices where !isSpace(bytes[index]) {
          block[end] = bytes[index]
          end += 1
        }
      }
    }
    let hasPrefix = packed.withBytes { bytes in
      bytes.count >= prefix.count && prefix.indices.allSatisfy { bytes[$0] == prefix[$0] }
    }
    if hasPrefix { return try VaultKey.parse(packed) }
    let whole = packed.withBytes { bytes in
      SecretBytes(count: prefix.count + bytes.count) { block in
        block.copyBytes(from: prefix)
        bytes.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: block[prefix.count...]).copyMemory(from: $0)
        }
      }
    }
    return try VaultKey.parse(whole)
  }
}
