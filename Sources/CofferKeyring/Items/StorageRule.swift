#if Keyring
internal import CofferCore
internal import CofferSystem

/// Which values a collection returns as they were stored.
enum StorageRule {
  /// UTF-8 text without NUL: gnome-keyring's encrypted files.
  case text
  /// Text that no service changes. The rule where nothing more is known, and for gnome-keyring's text files.
  case plainText
  /// UTF-8 text without NUL and placeholders: KeePassXC replaces placeholders such as `{TITLE}` when a value is read.
  case withoutPlaceholders
  /// What every rule allows.
  case strictest

  /// The rule for `collection` of a service. `dataDirectory` is the user's `XDG_DATA_HOME`.
  static func rule(for collection: String, of kind: ServiceKind, dataDirectory: String) -> StorageRule {
    if kind == .keePassXC { return .withoutPlaceholders }
    guard kind == .gnomeKeyring, let file = fileName(of: collection) else { return .plainText }
    let magic = Array("GnomeKeyring\n\r\0\n".utf8)
    let isEncrypted =
      beginning(ofFile: "\(dataDirectory)/keyrings/\(file).keyring", count: magic.count) == magic
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
