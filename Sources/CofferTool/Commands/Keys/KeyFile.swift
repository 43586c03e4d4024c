internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// A file with the text of a vault's key, or of identities.
struct KeyFile {
  /// The largest file that is read, in bytes. A key's text has 62, and that of an identity with its recipient 2,100.
  private static let maximumSize = 65_536

  let path: String

  init(path: String) throws(SecretError) {
    try VaultCredential.requirePath(path, from: "The option")
    self.path = path
  }

  /// The key or the identities in the file, or `nil` if there is no file. Throws `.invalidKey` for another text, and
  /// `.denied` if other users can read the file.
  func credential() throws(SecretError) -> VaultCredential? {
    guard let text = try PrivateFile.read(path, as: "The key file \(path)", limit: Self.maximumSize) else { return nil }
    return try VaultCredential.parse(text)
  }

  /// Creates the file, and its directory if necessary, and returns when it is on the disk. Throws `.alreadyExists` if
  /// the path exists. If it throws, there is no file, unless the error says so.
  func create(_ key: SecretBytes) throws(SecretError) {
    try PrivateDirectory.create(Path.parent(of: path))
    let line = SecretWriter.joined([try VaultKey.text(of: key), SecretBytes("\n")])
    try PrivateFile.write(line, to: path, replacing: false)
  }

  /// The error to report after a failed change. The change was to let the key in this new file open `vault`.
  ///
  /// `vault` must have no other credential. Removes the file. Keeps it if it opens the vault, which is so if only the
  /// last barrier of the change failed, or if this cannot be determined. A change in doubt may still be made later.
  func failure(_ error: SecretError, of vault: VaultBackend) -> SecretError {
    let opens: Bool?
    do throws(SecretError) { opens = error.code == .outcomeUnknown ? nil : try vault.opens() } catch { opens = nil }
    switch opens {
    case true?:
      return SecretError(
        error.code, "\(error.reason) The key file \(path) is kept, because it opens the vault \(vault.path).",
        advice: "Check the disk, and then the vault with secret verify.", effect: .changed)
    case nil:
      return SecretError(
        error.code, "\(error.reason) The key file \(path) is kept, because the vault \(vault.path) may need it.",
        advice: "Try it later with secret verify. If it does not open the vault, remove it.", effect: .unknown)
    case false?:
      if unlink(path) == 0 || errno == ENOENT { return error }
      return SecretError(
        error.code, "\(error.reason) The key file \(path) could not be removed, and opens nothing.",
        advice: "Remove it.", effect: error.effect)
    }
  }
}

extension VaultBackend {
  /// Whether there is a vault that its credentials open. Throws if this cannot be determined.
  func opens() throws(SecretError) -> Bool {
    var status = stat()
    if !RemoteURL.isURL(path), lstat(path, &status) != 0, [ENOENT, ENOTDIR, EACCES].contains(errno) { return false }
    do throws(SecretError) {
      try unlock()
      return true
    } catch {
      if [.vaultNotFound, .wrongKey, .locked].contains(error.code) { return false }
      throw error
    }
  }
}
