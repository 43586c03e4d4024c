internal import CLinux
package import CofferCore
internal import CofferSystem
package import CofferVault
internal import CofferLibc

extension SecretError.Code {
  /// The kernel keyring is full, or the system does not allow its use.
  package static let kernelKeyringRefused = SecretError.Code("kernelKeyringRefused")
}

/// Master keys of vaults in the user's keyring of the Linux kernel, which keeps them in memory that is not swapped,
/// until a timeout or a restart. Every process of the user can read them.
package struct KernelKeyring {
  /// The master key that is kept for a vault, as a credential.
  package static let source = VaultCredentialSource("the kernel keyring") { request throws(SecretError) in
    try KernelKeyring().masterKey(ofVault: request.vault.id).map { .masterKey($0) }
  }

  package init() {}

  // keyctl(2), and the keyrings of keyrings(7).
  private enum Operation: Int32 {
    case revoke = 3, setPermissions = 5, link = 8, unlink = 9, search = 10, read = 11, setTimeout = 15
  }
  private static let processKeyring: Int32 = -2
  private static let userKeyring: Int32 = -4
  /// All permissions for a process that possesses the key. For the user: to view, read, revoke and find it.
  private static let permissions: UInt = 0x3F0F_0000

  private static func description(_ vaultID: String) -> String { "coffer:\(vaultID)" }

  private static func call(_ operation: Operation, _ first: Int32, _ second: UInt = 0, _ third: UInt = 0) -> Int {
    coffer_keyctl(operation.rawValue, UInt(bitPattern: Int(first)), second, third, 0)
  }

  /// Keeps `master` for `duration`, in whole seconds, and replaces the key that was kept. Throws
  /// `.kernelKeyringRefused` if the kernel has no such keyring or refuses its use.
  package func keep(_ master: SecretBytes, forVault vaultID: String, for duration: Duration) throws(SecretError) {
    // Added to the process's keyring first, so that the key is never in the user's keyring without its timeout.
    let key = master.withBytes { bytes in
      bytes.withUnsafeBytes { bytes in
        coffer_add_key("user", Self.description(vaultID), bytes.baseAddress, bytes.count, Self.processKeyring)
      }
    }
    if key < 0 { throw Self.failure(errno) }
    // After a failure, no keyring has a link to the key any more, and the kernel deletes it.
    defer { _ = Self.call(.unlink, key, UInt(bitPattern: Int(Self.processKeyring))) }
    guard
      Self.call(.setTimeout, key, UInt(duration.components.seconds)) >= 0,
      Self.call(.setPermissions, key, Self.permissions) >= 0,
      Self.call(.link, key, UInt(bitPattern: Int(Self.userKeyring))) >= 0
    else { throw Self.failure(errno) }
  }

  /// Returns the key that is kept, or `nil` if there is none or if there is no such keyring.
  private func masterKey(ofVault vaultID: String) throws(SecretError) -> SecretBytes? {
    guard let key = try find(vaultID) else { return nil }
    var length = 0
    let held = SecretBytes(count: 64) { block in
      length = Self.call(.read, key, UInt(bitPattern: block.baseAddress), UInt(block.count))
    }
    // A master key is 32 bytes long. A key of another length belongs to another program.
    return length == 32 ? held.prefix(length) : nil
  }

  /// Removes the key. Returns `false` if none was kept. Throws like ``keep(_:forVault:for:)``.
  @discardableResult
  package func forget(vault vaultID: String) throws(SecretError) -> Bool {
    guard let key = try find(vaultID, isStrict: true) else { return false }
    guard Self.call(.revoke, key) >= 0 else { throw Self.failure(errno) }
    _ = Self.call(.unlink, key, UInt(bitPattern: Int(Self.userKeyring)))
    return true
  }

  /// Throws like ``keep(_:forVault:for:)`` if keys cannot be kept.
  package func requireAvailable() throws(SecretError) {
    _ = try find("none", isStrict: true)
  }

  private func find(_ vaultID: String, isStrict: Bool = false) throws(SecretError) -> Int32? {
    let key = "user".withCString { type in
      Self.description(vaultID).withCString { description in
        Self.call(.search, Self.userKeyring, UInt(bitPattern: type), UInt(bitPattern: description))
      }
    }
    if key >= 0 { return Int32(truncatingIfNeeded: key) }
    let code = errno
    // The system call filter of a container may return any error. No key can have been kept then.
    if isStrict && ![ENOKEY, EKEYEXPIRED, EKEYREVOKED].contains(code) { throw Self.failure(code) }
    return nil
  }

  private static func failure(_ code: Int32) -> SecretError {
    let message = FileSystemError(code)
    return SecretError(
      .kernelKeyringRefused,
      code == EDQUOT
        ? "The kernel's keyring has no room for more keys of this user (\(message))."
        : "The kernel's keyring is not allowed here, as is usual in containers (\(message)).",
      advice: "Use a key file instead."
    )
  }
}
