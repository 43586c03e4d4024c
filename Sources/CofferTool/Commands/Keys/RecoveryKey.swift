internal import Coffer

/// A key's text in groups, for people to write down. White space in it has no meaning; hyphens do, because
/// they are among the characters of a key's text.
enum RecoveryKey {
  private static let prefix = "coffer-key-v1:"
  private static let group = 6
  private static let groupsPerLine = 4

  /// Prints the prefix on one line, and two lines of four groups of six characters.
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
          if written % (group * groupsPerLine) == 0 {
            append(UInt8(ascii: "\n"))
          } else if written % group == 0 {
            append(UInt8(ascii: " "))
          }
        }
      }
    }
    try Output.standard.write(lines)
  }

  /// The key with the given text: with white space anywhere, and with or without the prefix. Throws
  /// `.invalidKey` if the text is mistyped.
  static func parse(_ text: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    let prefix = Array(prefix.utf8)
    var end = prefix.count
    // The prefix, followed by the text without white space.
    let whole = SecretBytes(count: prefix.count + text.count) { block in
      block.copyBytes(from: prefix)
      text.withBytes { bytes in
        for index in bytes.indices where !isSpace(bytes[index]) {
          block[end] = bytes[index]
          end += 1
        }
      }
    }
    return try VaultKey.parse(
      whole.withBytes { bytes in
        let packed = bytes.extracting(prefix.count..<end)
        let hasPrefix = packed.count >= prefix.count && prefix.indices.allSatisfy { packed[$0] == prefix[$0] }
        return SecretBytes(copying: hasPrefix ? packed : bytes.extracting(0..<end))
      })
  }
}
