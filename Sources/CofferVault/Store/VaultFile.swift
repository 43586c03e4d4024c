package import CofferSystem
package import CofferVaultFormat
package import CofferCore
internal import Glibc

/// A vault's file, open, with its header parsed; nothing in it is authenticated yet, and nothing decrypted.
package struct VaultFile: Sendable {
  package let path: String
  package let location: Location
  package let file: any File
  /// False where the system allows reading alone.
  package let isWritable: Bool
  /// What the file was when it was opened: which file it is does not change.
  package let status: FileStatus
  package let header: Header
  /// What the header takes in the file: where the commit slots begin.
  package let headerLength: Int
  /// BLAKE2b-256 of the header with its padding: commit slots are bound to it.
  package let headerHash: [UInt8]

  /// Opens what the path names. Throws `.vaultNotFound`, `.notAVault`, `.denied`, `.unsupportedVersion`,
  /// `.tampered`, `.io`.
  package init(path: String, environment: VaultEnvironment) throws(SecretError) {
    do throws(FileSystemError) {
      location = try environment.fileSystem.locate(path)
    } catch { throw .io(error, "open", path: path) }
    self.path = path
    (file, isWritable) = try Self.open(location, path: path)

    do throws(FileSystemError) { status = try file.status() } catch {
      throw .io(error, "open", path: path)
    }
    guard status.isRegular else { throw .notAVault(path: path) }
    try Self.requirePrivate(status, to: environment.user, path: path)
    let start = try file.readFully(min(status.size, Layout.pageSize), at: 0, path: path)
    guard start.starts(with: Layout.magic) else { throw .notAVault(path: path) }
    headerLength = Header.paddedLength(try Header.length(ofHeaderBeginning: start))
    let bytes =
      headerLength == start.count ? start : try file.readFully(headerLength, at: 0, path: path)
    header = try Header(parsing: bytes)
    headerHash = Sodium.hash(bytes.span, count: 32)
  }

  private static func open(
    _ location: Location,
    path: String
  ) throws(SecretError) -> (any File, isWritable: Bool) {
    func open(writable: Bool) throws(FileSystemError) -> any File {
      try uninterrupted { () throws(FileSystemError) in
        try location.directory.open(location.name, writable: writable)
      }
    }
    do throws(FileSystemError) {
      do throws(FileSystemError) {
        return (try open(writable: true), true)
      } catch {
        guard [EACCES, EPERM, EROFS].contains(error.number) else { throw error }
        return (try open(writable: false), false)
      }
    } catch { throw .io(error, "open", path: path) }
  }

  package var description: VaultDescription {
    VaultDescription(path: path, id: header.vaultID.hex, keySlots: header.slots.map(VaultKeySlot.init))
  }

  /// Throws `.denied` where the vault can only be read.
  package func requireWritable() throws(SecretError) {
    if header.readOnlyCompatible != 0 {
      throw SecretError(
        .denied,
        "The vault at \(path) was last written by a later version of Coffer, and this one may only read it.",
        advice: "Update Coffer to change it."
      )
    }
    if !isWritable { throw .io(FileSystemError(EACCES), "write", path: path) }
  }

  /// Throws `.denied` for a file that others may have read or changed.
  private static func requirePrivate(_ status: FileStatus, to user: UInt32, path: String) throws(SecretError)
  {
    guard status.owner == user else {
      throw SecretError(
        .denied,
        "The vault at \(path) belongs to another user.",
        advice: "Use it as its owner, or copy it to a file of your own."
      )
    }
    guard status.mode & 0o077 == 0 else {
      throw SecretError(
        .denied,
        "The vault at \(path) is open to other users.",
        advice: "Close it with `chmod 600`, and consider who may have read or changed it."
      )
    }
  }

  /// Whether the path still names the file that is open here. Throws `.denied` where others have been let in since.
  package func isCurrent() throws(SecretError) -> Bool {
    let now: FileStatus
    do throws(FileSystemError) { now = try location.directory.status(of: location.name) } catch {
      throw .io(error, "open", path: path)
    }
    guard now.isSameFile(as: status) else { return false }
    try Self.requirePrivate(now, to: status.owner, path: path)
    return true
  }

  /// At most this many passphrase slots are tried for one passphrase: each costs a derivation.
  private static let maximumPassphraseAttempts = 4

  /// The keys, from the first source whose credential opens a slot. Throws `.locked` where no source has
  /// any, `.wrongKey` where none opens the vault, and what a source throws.
  package func unlock(
    with sources: [any VaultCredentialSource],
    limits: VaultOptions
  ) throws(SecretError) -> DerivedKeys {
    var tried: [String] = []
    var refusal: SecretError?
    let description = description
    for source in sources {
      if let keeper = source as? any MasterKeySource {
        // One that was kept is of no use any more once the vault has another.
        guard let master = try keeper.masterKey(for: description) else { continue }
        let keys = DerivedKeys(master: master)
        guard keys.isCommitted(to: header) else { continue }
        try keys.authenticate(header)
        return keys
      }
      guard let credential = try source.credential(for: description) else { continue }
      tried.append(source.name)
      do throws(SecretError) {
        if let (_, keys) = try open(with: credential, limits: limits) { return keys }
      } catch {
        guard error.code == .costLimitExceeded else { throw error }
        refusal = error
      }
    }
    if let refusal { throw refusal }
    if tried.isEmpty {
      throw SecretError(
        .locked,
        "The vault at \(path) is locked, and no key for it was found.",
        advice: "Set COFFER_KEY_FILE, or one of the other sources of keys."
      )
    }
    throw SecretError(
      .wrongKey,
      "No key opens the vault at \(path); tried: \(tried.joined(separator: ", ")).",
      advice: "Check that the key or passphrase is the one for this vault; a damaged header looks the same."
    )
  }

  /// The slot that `credential` opens and the keys it gives, or `nil` where it opens none.
  package func open(
    with credential: borrowing VaultCredential,
    limits: VaultOptions
  ) throws(SecretError) -> (slot: KeySlot, keys: DerivedKeys)? {
    var attempts = 0
    var refusal: SecretError?
    for slot in header.slots {
      if case .passphrase = slot.parameters, credential.isPassphrase {
        attempts += 1
        if attempts > Self.maximumPassphraseAttempts { continue }
      }
      do throws(SecretError) {
        guard
          let secret = try SlotKey(
            credential,
            parameters: slot.parameters,
            salt: slot.salt,
            limits: limits
          ),
          let master = try secret.unwrap(slot, vaultID: header.vaultID)
        else { continue }
        let keys = DerivedKeys(master: master)
        try keys.authenticate(header)
        return (slot, keys)
      } catch {
        guard error.code == .costLimitExceeded else { throw error }
        refusal = error
      }
    }
    if let refusal { throw refusal }
    return nil
  }
}
