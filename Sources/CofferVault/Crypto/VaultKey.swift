internal import CSodium
public import CofferCore

/// The text form of a vault's key: `coffer-key-v1:`, then base64url of the key's 32 bytes and 4 bytes of checksum.
///
/// Secret scanners can recognise the text, and a typo is an error of its own. The format is specified in `VaultFormat`.
public enum VaultKey {
  /// The length of a key in bytes.
  public static let length = 32

  private static let prefix = Array("coffer-key-v1:".utf8)
  private static let checksumLength = 4
  private static let bodyLength = 48

  /// Returns a new random key.
  public static func generate() -> SecretBytes {
    SecretBytes(count: length) { SystemRandomness().fill($0) }
  }

  /// Returns the text form of `key`: 62 bytes without a line feed.
  public static func text(of key: borrowing SecretBytes) -> SecretBytes {
    defer { Sodium.wipeStack() }
    let checksum = checksum(of: key)
    let both = SecretBytes(count: length + checksumLength) { both in
      key.withUnsafeBytes { both.copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: both[length...]).copyBytes(from: checksum)
    }
    // sodium_bin2base64 writes a NUL after the text.
    let body = SecretBytes(count: bodyLength + 1) { text in
      both.withUnsafeBytes { both in
        text.withMemoryRebound(to: CChar.self) { text in
          guard let start = text.baseAddress else { return }
          sodium_bin2base64(
            start, text.count, both.start, both.count, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
        }
      }
    }
    return SecretBytes(count: prefix.count + bodyLength) { text in
      text.copyBytes(from: prefix)
      body.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: text[prefix.count...]).copyBytes(from: $0.prefix(bodyLength))
      }
    }
  }

  /// Returns the key whose text form is `text`, which may end in one line feed. Throws `.invalidKey` for any other text.
  public static func parse(_ text: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    defer { Sodium.wipeStack() }
    let count = text.withBytes { text in
      text.count > 0 && text[text.count - 1] == 0x0A ? text.count - 1 : text.count
    }
    guard count >= prefix.count, text.withUnsafeBytes({ $0.starts(with: prefix) }) else {
      throw SecretError(
        .invalidKey, "That is not a Coffer key: a key begins with coffer-key-v1:.",
        advice: "Check that it is the right file or variable.")
    }
    guard count == prefix.count + bodyLength else {
      throw SecretError(
        .invalidKey, "The key is \(count) characters long instead of \(prefix.count + bodyLength).",
        advice: "Part of it is missing, or something follows it; copy it again.")
    }
    var decodedCount = 0
    let both = SecretBytes(count: length + checksumLength) { both in
      text.withUnsafeBytes { text in
        let result = sodium_base642bin(
          both.start, both.count, text.characters + prefix.count, bodyLength, nil, &decodedCount, nil,
          sodium_base64_VARIANT_URLSAFE_NO_PADDING)
        if result != 0 { decodedCount = 0 }
      }
    }
    let key = both.withBytes { SecretBytes(copying: $0.extracting(first: length)) }
    let checksum = checksum(of: key)
    let agrees = both.withBytes { both in
      checksum.indices.allSatisfy { checksum[$0] == both[length + $0] }
    }
    // libsodium 1.0.18 decodes some bytes above 0x7F: only the canonical spelling is the key's text.
    let given = text.withBytes { SecretBytes(copying: $0.extracting(first: count)) }
    let isCanonical = given.isEqual(to: Self.text(of: key))
    guard decodedCount == length + checksumLength, agrees, isCanonical else {
      throw SecretError(
        .invalidKey, "The key is mistyped: its checksum does not match.", advice: "Copy it again.")
    }
    return key
  }

  private static func checksum(of key: borrowing SecretBytes) -> [UInt8] {
    // The message is in guarded memory, so that no array with the key has to be wiped.
    let message = SecretBytes(count: prefix.count + length) { message in
      message.copyBytes(from: prefix)
      key.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: message[prefix.count...]).copyMemory(from: $0)
      }
    }
    return message.withBytes { Array(Sodium.hash($0, count: 32).prefix(checksumLength)) }
  }
}
