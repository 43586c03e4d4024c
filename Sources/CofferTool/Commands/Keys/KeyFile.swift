internal import Coffer
internal import CofferSystem

/// A file with the text of a vault's key.
struct KeyFile {
  /// The largest file that is read, in bytes. The text of a key has 62.
  private static let maximumSize = 4096

  let path: String

  /// The key in the file, or `nil` if there is no file. Throws `.invalidKey` if the text is not a key, and
  /// `.denied` if other users can read the file.
  func key() throws(SecretError) -> SecretBytes? {
    guard let text = try PrivateFile.read(path, as: "The key file \(path)", limit: Self.maximumSize) else {
      return nil
    }
    return try VaultKey.parse(text)
  }

  /// Creates the file, and its directory if necessary, and returns when it is on the disk. Throws
  /// `.alreadyExists` if the path exists. If it throws, there is no file.
  func create(_ key: borrowing SecretBytes) throws(SecretError) {
    try PrivateDirectory.create(Path.parent(of: path))
    let text = VaultKey.text(of: key)
    let line = SecretWriter.bytes(capacity: text.count + 1) { writer in
      writer.append(text)
      writer.append("\n")
    }
    try line.withBytes { bytes throws(SecretError) in
      try PrivateFile.write(bytes, to: path, replacing: false)
    }
  }
}
