#if Keyring
internal import CofferCore

/// Encodes values that a service would change.
///
/// gnome-keyring stores a keyring without a password as a text file and does not escape values. A line feed
/// inside a value makes the file unreadable. A line feed at the end and white space at the start are lost,
/// and a backslash starts an escape sequence. Other services treat values as C strings or as text. A value
/// that the collection does not change by its ``StorageRule`` is stored unencoded, so that other programs can read it.
/// Every other value is stored as ``marker`` and its base64.
///
/// The marker is part of the value. An attribute could be separated from the value by a crash between two
/// calls, or by another program that overwrites only the value. A value that begins with the marker, but that
/// ``encoded(_:by:)`` would not have produced, is not decoded: another program wrote it.
enum ValueEncoding {
  /// The prefix of an encoded value.
  private static let marker = "coffer:base64:"

  /// Returns the encoded form of `secret`, or `nil` if it needs none.
  static func encoded(_ secret: SecretBytes, by rule: StorageRule) -> SecretBytes? {
    if secret.withBytes({ isKept($0, by: rule) }) { return nil }
    let text = secret.base64()
    let start = marker.utf8.count
    return SecretBytes(count: start + text.count) { target in
      target.copyBytes(from: marker.utf8)
      text.withBytes { for index in $0.indices { target[start + index] = $0[index] } }
    }
  }

  /// Returns the value that is stored as `stored`.
  static func decoded(_ stored: SecretBytes) -> SecretBytes {
    guard let value = stored.withBytes({ decode($0) }) else { return stored }
    // `stored` is an encoded value only if the value would be encoded in exactly this form.
    guard let again = encoded(value, by: .strictest), again.isEqual(to: stored) else {
      return stored
    }
    return value
  }

  private static func isKept(_ bytes: Span<UInt8>, by rule: StorageRule) -> Bool {
    switch rule {
    case .plainText: isPlain(bytes)
    case .withoutPlaceholders: !hasMarker(bytes) && isText(bytes) && !hasBrace(bytes, beforeLetter: true)
    case .strictest: isPlain(bytes) && !hasBrace(bytes)
    case .text: !hasMarker(bytes) && isText(bytes)
    }
  }

  /// Every placeholder of KeePassXC has a letter directly after the brace.
  private static func hasBrace(_ bytes: Span<UInt8>, beforeLetter: Bool = false) -> Bool {
    bytes.indices.contains {
      bytes[$0] == UInt8(ascii: "{")
        && (!beforeLetter || $0 + 1 < bytes.count && (0x61...0x7A).contains(bytes[$0 + 1] | 0x20))
    }
  }

  private static func isText(_ bytes: Span<UInt8>) -> Bool {
    !bytes.indices.contains { bytes[$0] == 0 } && bytes.isUTF8
  }

  /// Whether every service preserves `bytes`: UTF-8 text without control characters other than tab, without a
  /// backslash, and without white space at either end.
  private static func isPlain(_ bytes: Span<UInt8>) -> Bool {
    if bytes.isEmpty { return true }
    if isSpace(bytes[0]) || isSpace(bytes[bytes.count - 1]) || hasMarker(bytes) { return false }
    for index in bytes.indices {
      let byte = bytes[index]
      if byte < 0x20 && byte != 0x09 || byte == 0x7F || byte == 0x5C { return false }
    }
    return isText(bytes)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func hasMarker(_ bytes: Span<UInt8>) -> Bool {
    let marker = marker.utf8
    return bytes.count >= marker.count && zip(bytes.indices, marker).allSatisfy { bytes[$0] == $1 }
  }

  /// Returns the bytes after the marker, or `nil` if there is no marker or no base64 after it.
  private static func decode(_ bytes: Span<UInt8>) -> SecretBytes? {
    let start = marker.utf8.count
    guard hasMarker(bytes), bytes.count > start else { return nil }
    return SecretBytes.decodingBase64(bytes.extracting(start..<bytes.count))
  }
}
#endif
