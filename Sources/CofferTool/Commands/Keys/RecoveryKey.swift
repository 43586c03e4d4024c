internal import Coffer

/// A key's text in groups, for people to write down. White space in it has no meaning; hyphens do, because they are
/// among the characters of a key's text.
enum RecoveryKey {
  private static let prefix = "coffer-key-v1:"
  private static let group = 6
  private static let groupsPerLine = 4

  /// Prints the prefix on one line, and two lines of four groups of six characters.
  static func print(_ key: SecretBytes) throws(SecretError) {
    let text = try VaultKey.text(of: key)
    let lines = text.withBytes { bytes in
      SecretWriter.bytes { writer in
        writer.append(prefix + "\n")
        for index in prefix.utf8.count..<bytes.count {
          writer.append(bytes[index])
          let written = index - prefix.utf8.count + 1
          if written % group == 0 { writer.append(written % (group * groupsPerLine) == 0 ? "\n" : " ") }
        }
      }
    }
    try Output.standard.write(lines)
  }

  /// Parses the text of a key, which may have white space anywhere and may lack the prefix. Throws `.invalidKey` if the
  /// text is mistyped.
  static func parse(_ text: SecretBytes) throws(SecretError) -> SecretBytes {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    let packed = text.withBytes { bytes in
      SecretWriter.bytes { writer in
        for index in bytes.indices where !isSpace(bytes[index]) { writer.append(bytes[index]) }
      }
    }
    if packed.isEmpty {
      throw SecretError(.invalidKey, "There is no key in the input.", advice: "Use a terminal or a pipe.")
    }
    if packed.withBytes({ $0.starts(with: prefix) }) { return try VaultKey.parse(packed) }
    return try VaultKey.parse(SecretWriter.joined([SecretBytes(prefix), packed]))
  }
}
