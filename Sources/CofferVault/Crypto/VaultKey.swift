internal import CSodium
public import CofferCore

/// The text form of a vault's key: `coffer-key-v1:`, then base64url of the key's 32 bytes and 4 bytes of
/// checksum.
///
/// Secret scanners can recognise the text, and a typo is an error of its own. The format is specified in
/// `VaultFormat`.
public enum VaultKey {
  /// The length of a key in bytes.
  public static let length = 32

  private static let prefix = Array("coffer-key-v1:".utf8)
  private static let checksumLength = 4
  private static let textLength = prefix.count + 48
  private static let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING

  /// Returns a new random key.
  public static func generate() -> SecretBytes {
    SecretBytes(count: length) { SystemRandomness().fill($0) }
  }

  /// Returns the key that the secret of a portal stands for. Always the same one for the same secret.
  package static func derived(fromPortal secret: borrowing SecretBytes) -> SecretBytes {
    Sodium.derivedKey(from: secret, context: "CfrPortl")
  }

  /// Returns the text form of `key`: 62 bytes without a line feed. Throws `.invalidKey` unless `key` is 32 bytes long.
  public static func text(of key: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    try requireBytes(key)
    defer { Residue.clear() }
    let checksum = checksum(of: key)
    let both = SecretBytes(count: length + checksumLength) { both in
      key.withUnsafeBytes { both.copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: both[length...]).copyBytes(from: checksum)
    }
    // sodium_bin2base64 writes a NUL after the text.
    let terminated = SecretBytes(count: textLength + 1) { text in
      text.copyBytes(from: prefix)
      let body = UnsafeMutableRawBufferPointer(rebasing: text[prefix.count...])
      both.withUnsafeBytes {
        _ = sodium_bin2base64(body.characters, body.count, $0.start, $0.count, variant)
      }
    }
    return terminated.withBytes { SecretBytes(copying: $0.extracting(first: textLength)) }
  }

  /// Returns the key whose text form is `text`, which may end in one line feed. Throws `.invalidKey` for any
  /// other text.
  public static func parse(_ text: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    defer { Residue.clear() }
    let count = text.withBytes { text in
      text.count > 0 && text[text.count - 1] == 0x0A ? text.count - 1 : text.count
    }
    guard count >= prefix.count, text.withUnsafeBytes({ $0.starts(with: prefix) }) else {
      throw SecretError(
        .invalidKey, "That is not a Coffer key: a key begins with coffer-key-v1:.",
        advice: "Check that it is the right file or variable.")
    }
    guard count == textLength else {
      throw SecretError(
        .invalidKey, "The key is \(count) characters long instead of \(textLength).",
        advice: "Part of it is missing, or something follows it; copy it again.")
    }
    let both = SecretBytes(count: length + checksumLength) { both in
      text.withUnsafeBytes {
        _ = sodium_base642bin(
          both.start, both.count, $0.characters + prefix.count, count - prefix.count, nil, nil, nil, variant)
      }
    }
    let key = both.withBytes { SecretBytes(copying: $0.extracting(first: length)) }
    // The key's own text has the right checksum. It is compared as a whole, because libsodium 1.0.18 decodes
    // more than one spelling.
    let given = text.withBytes { SecretBytes(copying: $0.extracting(first: count)) }
    guard try given.isEqual(to: Self.text(of: key)) else {
      throw SecretError(
        .invalidKey, "The key is mistyped: its checksum does not match.", advice: "Copy it again.")
    }
    return key
  }

  /// Throws `.invalidKey` unless `key` is the bytes of a key.
  static func requireBytes(_ key: borrowing SecretBytes) throws(SecretError) {
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
