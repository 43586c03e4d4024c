#if Keyring
internal import CofferCore

/// How a value is put into a keyring so that it comes back byte for byte.
///
/// gnome-keyring writes a keyring without a password as a text file, and the value into it as it is: a
/// line feed inside makes the whole file unreadable, one at the end is lost, and so is white space at the
/// start; a backslash is taken for an escape. Other services take values for C strings, or for text. So
/// only a value that none of them mangles goes as it is, which nearly every password and token does; any
/// other becomes ``marker`` followed by its base64.
///
/// The mark is in the value, not beside it: the two cannot be parted by a crash between two calls, nor
/// by another program that overwrites the value and leaves the item's attributes. A value of another
/// program's that only looks marked is not decoded, since nothing here would have encoded it.
enum ValueEncoding {
  /// What an encoded value begins with.
  static let marker = "coffer:base64:"

  /// The largest encoded size of a value of `count` bytes.
  static func encodedSize(_ count: Int) -> Int { marker.utf8.count + (count + 2) / 3 * 4 }

  /// `secret` as it is to be stored, or `nil` where that is what it is.
  static func encoded(_ secret: borrowing SecretBytes) -> SecretBytes? {
    secret.withBytes { bytes in isPlain(bytes) ? nil : encode(bytes) }
  }

  /// The value that was meant by what is stored.
  static func decoded(_ stored: consuming SecretBytes) -> SecretBytes {
    guard let value = stored.withBytes({ decode($0) }) else { return stored }
    // Only what would be encoded in just this way is an encoded value.
    guard let again = encoded(value), again.isEqual(to: stored) else { return stored }
    return value
  }

  /// Whether every service keeps `bytes` as they are: UTF-8 text without control characters other than
  /// tab, without a backslash, and with no white space at either end.
  static func isPlain(_ bytes: Span<UInt8>) -> Bool {
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

  /// The bytes behind the marker, or `nil` where there is no marker or what follows is not base64.
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
