internal import CofferSystem
internal import CofferVaultFormat
public import CofferCore
internal import Glibc

extension VaultBackend {
  /// Makes a new, empty vault with one key slot. Its directory must be there.
  ///
  /// `label` names the slot and is not encrypted: at most 64 UTF-8 bytes. Throws `.alreadyExists` where the
  /// path names anything, `.invalidKey` for a credential that cannot be one, `.io`, `.denied`; then there
  /// is no new file.
  public static func create(
    at path: String,
    credential: borrowing VaultCredential,
    label: String = "",
    options: VaultOptions = VaultOptions()
  ) throws(SecretError) {
    try create(
      at: path,
      credential: credential,
      label: label,
      options: options,
      environment: VaultEnvironment()
    )
  }

  package static func create(
    at path: String,
    credential: borrowing VaultCredential,
    label: String,
    options: VaultOptions,
    environment: VaultEnvironment
  ) throws(SecretError) {
    let location: Location
    do throws(FileSystemError) {
      location = try environment.fileSystem.locate(path)
    } catch {
      guard error.number == ENOENT else { throw .io(error, "make", path: path) }
      throw SecretError(
        .io,
        "There is no directory for a vault at \(path).",
        advice: "Make it first, with mode 700."
      )
    }
    // Before the passphrase is stretched. What decides is the rename below.
    do throws(FileSystemError) {
      _ = try location.directory.status(of: location.name)
      throw FileSystemError(EEXIST)
    } catch {
      if error.number != ENOENT { throw .io(error, "make", path: path) }
    }
    let keys = DerivedKeys(randomness: environment.randomness)
    let vaultID = environment.randomness.bytes16()
    let slot = try KeySlot.make(
      credential,
      for: keys,
      vaultID: vaultID,
      label: label,
      options: options,
      environment: environment
    )
    var new = try VaultFileWriter(
      at: location,
      path: path,
      temporaryName: ".\(location.name).\(environment.randomness.bytes16().hex)",
      header: Header(vaultID: vaultID, fileID: .zero, slots: [slot]),
      keys: keys,
      sequence: 1,
      randomness: environment.randomness
    )
    do throws(SecretError) { try new.commit(replacing: false) } catch {
      new.abandon()
      throw error
    }
    try new.settle()
  }
}

extension KeySlot {
  /// A new slot, in which `credential` wraps the master key of `keys`.
  static func make(
    _ credential: borrowing VaultCredential,
    for keys: DerivedKeys,
    vaultID: Bytes16,
    label: String,
    options: VaultOptions,
    environment: VaultEnvironment
  ) throws(SecretError) -> KeySlot {
    guard label.utf8.count <= Layout.maximumSlotLabelLength, !label.utf8.contains(0) else {
      throw SecretError(
        .invalidMetadata,
        "A key slot's label is longer than \(Layout.maximumSlotLabelLength) bytes or has a NUL in it.",
        advice: "Shorten it."
      )
    }
    let parameters = try credential.parameters(options)
    let salt = environment.randomness.array(16)
    guard
      let secret = try SlotKey(credential, parameters: parameters, salt: salt, limits: options)
    else { throw SecretError(.invalidKey, "The credential fits no kind of key slot.") }
    let header = KeySlot.slotHeader(
      id: environment.randomness.bytes16(),
      parameters: parameters,
      salt: salt,
      created: Timestamp.milliseconds(environment.now()),
      label: label
    )
    return try secret.wrap(
      keys.master,
      vaultID: vaultID,
      slotHeader: header,
      randomness: environment.randomness
    )
  }
}

extension VaultCredential {
  /// The parameters of a new slot for this credential. Throws `.invalidKey` where it cannot have one.
  fileprivate borrowing func parameters(_ options: VaultOptions) throws(SecretError) -> KeySlot.Parameters {
    switch self {
    case .key(let key):
      guard key.count == VaultKey.length else {
        throw SecretError(
          .invalidKey,
          "The key is \(key.count) bytes long instead of \(VaultKey.length).",
          advice: "Use a key that Coffer made."
        )
      }
      return .key
    case .passphrase(let passphrase):
      guard (1...SlotKey.maximumPassphraseLength).contains(passphrase.count) else {
        throw SecretError(
          .invalidKey,
          "The passphrase is \(passphrase.count) bytes long.",
          advice: "Use 1 to \(SlotKey.maximumPassphraseLength) bytes, and more than a few."
        )
      }
      return .passphrase(
        passes: UInt32(clamping: options.passphrasePasses),
        memory: UInt32(clamping: options.passphraseMemory / 1024)
      )
    }
  }
}
