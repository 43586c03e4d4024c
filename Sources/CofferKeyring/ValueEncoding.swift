#if Keyring
internal import CofferCore

/// Encodes values that a service would change.
///
/// gnome-keyring stores a keyring without a password as a text file and does not escape values. A line feed
/// inside a value makes the file unreadable. A line feed at the end and white space at the start are lost,
/// and a backslash starts an escape sequence. Other services treat values as C strings or as text. A value
/// that no service changes, such as nearly every password and token, is stored unencoded. Every other value
/// is stored as ``marker`` and its base64.
///
/// The marker is part of the value. An attribute could be separated from the value by a crash between two
/// calls, or by another program that overwrites only the value. A value that begins with the marker, but that
/// ``encoded(_:)`` would not have produced, is not decoded: another program wrote it.
enum ValueEncoding {
  /// The prefix of an encoded value.
  private static let marker = "coffer:base64:"

  /// The size in bytes of an encoded value of `count` bytes.
  private static func encodedSize(_ count: Int) -> Int { marker.utf8.count + (count + 2) / 3 * 4 }

  /// Returns the encoded form of `secret`, or `nil` if it needs none.
  static func encoded(_ secret: borrowing SecretBytes) -> SecretBytes? {
    secret.withBytes { bytes in isPlain(bytes) ? nil : encode(bytes) }
  }

  /// Returns the value that is stored as `stored`.
  static func decoded(_ stored: consuming SecretBytes) -> SecretBytes {
    guard let value = stored.withBytes({ decode($0) }) else { return stored }
    // `stored` is an encoded value only if the value would be encoded in exactly this form.
    guard let again = encoded(value), again.isEqual(to: stored) else { return stored }
    return value
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
    do {
      _ = try UTF8Span(validating: bytes)
      return true
    } catch {
      return false
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func hasMarker(_ bytes: Span<UInt8>) -> Bool {
    let marker = marker.utf8
    return bytes.count >= marker.count && zip(bytes.indices, marker).allSatisfy { bytes[$0] == $1 }
  }

  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
  )
  private static let padding = UInt8(ascii: "=")

  private static func encode(_ bytes: Span<UInt8>) -> SecretBytes {
    SecretBytes(count: encodedSize(bytes.count)) { target in
      var position = marker.utf8.count
      target.copyBytes(from: marker.utf8)
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let length = min(3, bytes.count - start)
        var group: UInt32 = 0
        for offset in 0..<3 {
          group = group << 8 | (offset < length ? UInt32(bytes[start + offset]) : 0)
        }
        for offset in 0..<4 {
          let digit = alphabet[Int(group >> (18 - 6 * UInt32(offset)) & 63)]
          target[position] = offset <= length ? digit : padding
          position += 1
        }
      }
    }
  }

  /// Returns the bytes after the marker, or `nil` if there is no marker or no base64 after it.
  private static func decode(_ bytes: Span<UInt8>) -> SecretBytes? {
    let start = marker.utf8.count
    guard hasMarker(bytes), (bytes.count - start).isMultiple(of: 4), bytes.count > start else { return nil }
    var end = bytes.count
    while end > bytes.count - 2, bytes[end - 1] == padding { end -= 1 }
    for index in start..<end where digit(bytes[index]) == nil { return nil }
    return SecretBytes(count: (end - start) * 3 / 4) { target in
      var (pending, bits, position) = (UInt32(0), 0, 0)
      for index in start..<end {
        pending = pending << 6 | (digit(bytes[index]) ?? 0)
        bits += 6
        if bits >= 8 {
          bits -= 8
          target[position] = UInt8(truncatingIfNeeded: pending >> UInt32(bits))
          position += 1
        }
      }
    }
  }

  private static func digit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a") + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0") + 52)
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
#endif
