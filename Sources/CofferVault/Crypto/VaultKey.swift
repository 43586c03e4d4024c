public import CofferCore

/// The text form of a vault's key: `coffer-key-v1:`, then base64url of the key's 32 bytes and 4 bytes of checksum.
///
/// Secret scanners can recognise the text, and the checksum finds a typo. The format is specified in `VaultFormat`.
public enum VaultKey {
  /// The length of a key in bytes.
  package static let length = 32

  private static let prefix = Array("coffer-key-v1:".utf8)
  private static let checksumLength = 4
  private static let textLength = prefix.count + 48

  /// Returns a new random key.
  public static func generate() -> SecretBytes {
    .random(count: length)
  }

  /// Returns the key that is derived from the secret of a portal. The same secret always gives the same key.
  package static func derived(fromPortal secret: SecretBytes) -> SecretBytes {
    Sodium.derivedKey(from: secret, context: "CfrPortl")
  }

  /// Returns the text form of `key`: 62 bytes without a line feed. Throws `.invalidKey` unless `key` is 32 bytes long.
  public static func text(of key: SecretBytes) throws(SecretError) -> SecretBytes {
    try requireBytes(key)
    let checksum = checksum(of: key)
    let both = key.withBytes { SecretBytes(joining: $0, checksum.span) }
    return both.base64(isURLSafe: true).withBytes { SecretBytes(joining: prefix.span, $0) }
  }

  /// Returns the key whose text form is `text`, which may end in one line feed. Throws `.invalidKey` for any other
  /// text.
  public static func parse(_ text: SecretBytes) throws(SecretError) -> SecretBytes {
    let count = text.withBytes { text in
      text.count > 0 && text[text.count - 1] == 0x0A ? text.count - 1 : text.count
    }
    guard count >= prefix.count, text.withUnsafeBytes({ $0.starts(with: prefix) }) else {
      throw SecretError(
        .invalidKey,
        "The text is neither a key, which begins with coffer-key-v1:, nor an identity, which begins with AGE-SECRET-KEY-.",
        advice: "Check that the text comes from the right file or variable.")
    }
    guard count == textLength else {
      throw SecretError(
        .invalidKey, "The key is \(count) characters long instead of \(textLength).",
        advice: "Part of it is missing, or something follows it; copy it again.")
    }
    let both = text.withBytes {
      SecretBytes.decodingBase64($0.extracting(prefix.count..<count), isURLSafe: true)
    }
    if let both {
      let key = both.prefix(length)
      let given = both.withBytes { $0.extracting(last: checksumLength).withUnsafeBytes { Array($0) } }
      if Sodium.isEqual(given, checksum(of: key)) { return key }
    }
    throw SecretError(.invalidKey, "The key is mistyped: its checksum does not match.", advice: "Copy it again.")
  }

  /// Throws `.invalidKey` unless `key` has the length of a key.
  static func requireBytes(_ key: SecretBytes) throws(SecretError) {
    if key.count == length { return }
    guard !key.withUnsafeBytes({ $0.starts(with: prefix) }) else {
      throw SecretError(
        .invalidKey, "The given key is the text of a key instead of its \(length) bytes.",
        advice: "Pass the result of VaultKey.parse of the text.")
    }
    throw SecretError(
      .invalidKey, "The key is \(key.count) bytes long instead of \(length).",
      advice: "Use a key that Coffer made.")
  }

  private static func checksum(of key: SecretBytes) -> [UInt8] {
    // The message is in guarded memory, so that no array with the key has to be wiped.
    let message = key.withBytes { SecretBytes(joining: prefix.span, $0) }
    return message.withBytes { Array(BLAKE2b.hash($0, count: 32).prefix(checksumLength)) }
  }
}
