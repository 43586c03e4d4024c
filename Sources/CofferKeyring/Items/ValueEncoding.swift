#if Keyring
internal import CofferCore
internal import CofferSystem

/// Encodes values that a service would change.
///
/// gnome-keyring stores a keyring without a password as a text file and does not escape values. A line feed inside a
/// value makes the file unreadable. A line feed at the end and white space at the start are lost, and a backslash
/// starts an escape sequence. Other services treat values as C strings or as text. A value that the ``StorageRule`` of
/// the collection allows is stored unencoded, so that other programs can read it. Every other value is stored as
/// ``marker`` and its base64.
///
/// The marker is part of the value. An attribute would not do: a crash between two calls, or a program that overwrites
/// only the value, could separate it from the value. A value that begins with the marker, but that ``encoded(_:by:)``
/// would not have produced, is not decoded: another program wrote it.
enum ValueEncoding {
  private static let marker = "coffer:base64:"

  /// Returns the encoded form of `secret`, or `nil` if it needs none.
  static func encoded(_ secret: SecretBytes, by rule: StorageRule) -> SecretBytes? {
    if secret.withBytes({ isKept($0, by: rule) }) { return nil }
    return secret.base64().withBytes { SecretBytes(joining: marker.utf8.span, $0) }
  }

  /// Returns the value that is stored as `stored`.
  static func decoded(_ stored: SecretBytes) -> SecretBytes {
    let start = marker.utf8.count
    let value = stored.withBytes { bytes in
      bytes.starts(with: marker) && bytes.count > start ? SecretBytes.decodingBase64(bytes.extracting(start...)) : nil
    }
    // `stored` is an encoded value only if the value would be encoded in exactly this form.
    guard let value, encoded(value, by: .strictest)?.isEqual(to: stored) == true else { return stored }
    return value
  }

  private static func isKept(_ bytes: Span<UInt8>, by rule: StorageRule) -> Bool {
    switch rule {
    case .plainText: isPlain(bytes)
    case .withoutPlaceholders: isUnmarkedText(bytes) && !hasBrace(bytes, beforeLetter: true)
    case .strictest: isPlain(bytes) && !hasBrace(bytes)
    case .text: isUnmarkedText(bytes)
    }
  }

  /// Every placeholder of KeePassXC has a letter directly after the brace.
  private static func hasBrace(_ bytes: Span<UInt8>, beforeLetter: Bool = false) -> Bool {
    bytes.indices.contains {
      bytes[$0] == UInt8(ascii: "{")
        && (!beforeLetter || $0 + 1 < bytes.count && (0x61...0x7A).contains(bytes[$0 + 1] | 0x20))
    }
  }

  /// Whether `bytes` are UTF-8 text without NUL that does not begin with the marker.
  private static func isUnmarkedText(_ bytes: Span<UInt8>) -> Bool {
    !bytes.starts(with: marker) && !bytes.contains(0) && bytes.isUTF8
  }

  /// Whether every service preserves `bytes`: UTF-8 text without control characters other than tab, without a
  /// backslash, and without white space at either end.
  private static func isPlain(_ bytes: Span<UInt8>) -> Bool {
    if bytes.isEmpty { return true }
    if isSpace(bytes[0]) || isSpace(bytes[bytes.count - 1]) { return false }
    func isChanged(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F || byte == 0x5C }
    return isUnmarkedText(bytes) && !bytes.indices.contains { isChanged(bytes[$0]) }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

/// Which values a collection returns unchanged.
enum StorageRule {
  /// UTF-8 text without NUL: gnome-keyring's encrypted files.
  case text
  /// Text that no service changes: for gnome-keyring's text files, and where nothing more is known.
  case plainText
  /// UTF-8 text without NUL and placeholders: KeePassXC replaces placeholders such as `{TITLE}` when a value is read.
  case withoutPlaceholders
  /// Only values that every rule allows.
  case strictest

  /// The rule for `collection` of a service. `dataDirectory` is the user's `XDG_DATA_HOME`.
  static func rule(for collection: String, of kind: ServiceKind, dataDirectory: String) -> StorageRule {
    if kind == .keePassXC { return .withoutPlaceholders }
    guard kind == .gnomeKeyring, let file = fileName(of: collection) else { return .plainText }
    let magic = Array("GnomeKeyring\n\r\0\n".utf8)
    let isEncrypted = beginning(ofFile: "\(dataDirectory)/keyrings/\(file).keyring", count: magic.count) == magic
    return isEncrypted ? .text : .plainText
  }

  /// The name of the file of a gnome-keyring collection: the last part of its path, in which `_5f` stands for the byte
  /// 0x5F. `nil` if the name could leave the directory.
  static func fileName(of collection: String) -> String? {
    guard let last = collection.split(separator: "/").last else { return nil }
    var (result, rest) = ([UInt8](), Array(last.utf8)[...])
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "_") else {
        result.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
        value != 0, value != UInt8(ascii: "/")
      else { return nil }
      result.append(value)
      rest = rest.dropFirst(2)
    }
    return result.first == UInt8(ascii: ".") ? nil : String(decoding: result, as: UTF8.self)
  }
}
#endif
