public import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import CofferLibc

extension VaultBackend {
  /// Creates an empty vault with one key slot, in an existing directory. Returns the vault when it is on the disk.
  /// `credential` opens the returned vault, unless it is a recipient: a recipient opens nothing.
  ///
  /// `label` names the slot: at most 64 bytes of UTF-8, not encrypted. `recipients` get slots of their own. Throws
  /// `.alreadyExists` if there is anything at `path`, `.vaultNotFound` if there is no such directory, `.invalidKey` for
  /// a malformed credential, `.unsupported` for a post-quantum recipient if libsodium is too old, `.invalidMetadata`
  /// for a malformed label, `.configuration` if the options set a cost below the minimum, `.tooLarge` for one above the
  /// maximum, `.io` and `.denied`. If it throws, there is no new file. There is one exception: the directory could not
  /// be written to the disk, and the new file could not be removed afterwards.
  ///
  /// If ``VaultOptions/knownVaultsDirectory`` is set, the vault is recorded there if possible. Its record replaces that
  /// of an earlier vault at the path. If that fails, the first use records it. If another vault is still recorded for
  /// the path, every use throws until a person accepts the new vault.
  @discardableResult
  public static func create(
    at path: String, credential: VaultCredential, label: String = "",
    recipients: [VaultRecipient] = [], history: HistoryLimit = .standard,
    options: VaultOptions = VaultOptions()
  ) throws(SecretError) -> VaultBackend {
    let (medium, environment) = VaultEnvironment().place(path, options)
    let new = try create(
      on: medium, credential: credential, label: label, recipients: recipients, history: history,
      options: options, environment: environment)
    var options = options
    // Nobody else vouches for a vault on an engine.
    if !new.isRecorded, options.pins.isEmpty, RemoteURL.isURL(path) { options.pins = [new.pin] }
    let source = VaultCredentialSource("the credential of the new vault", credential)
    return VaultBackend(medium, credentials: [source], options: options, environment: environment)
  }

  /// Returns whether the new vault was recorded, and its pin that accepts every state.
  @discardableResult
  package static func create(
    on medium: any VaultMedium, credential: VaultCredential, label: String = "",
    recipients: [VaultRecipient] = [], history: HistoryLimit = .standard, options: VaultOptions,
    environment: VaultEnvironment
  ) throws(SecretError) -> (isRecorded: Bool, pin: String) {
    // An early check, because stretching the passphrase takes long. Publishing the file checks again.
    try medium.requireVacant()
    let keys = DerivedKeys(randomness: environment.randomness)
    let vault = environment.randomness.bytes16()
    var slots = [
      try KeySlot.make(credential, for: keys, vault: vault, label: label, options: options, environment: environment)
    ]
    slots += try KeySlot.make(
      for: recipients, beside: slots, keys, vault: vault, label: "", options: options,
      environment: environment)
    let settings = BaseIndex.Settings(lookupKey: environment.randomness.array(32), history: history)
    var writer = VaultFileWriter(
      try medium.newFile(), header: Header(vaultID: vault, slots: slots), keys: keys,
      index: BaseIndex(sequence: 1, settings: settings, recent: BaseIndex.Recent(floor: 1)))
    _ = try writer.finish()
    switch try writer.draft.publish() {
    case .done: break
    case .refused:
      // Unless it is this one: a request to an engine can come twice.
      let isOwn: Bool
      do throws(SecretError) { isOwn = try VaultFile(medium.open()).header.vaultID == vault } catch {
        guard error.code == .vaultNotFound else { throw .outcomeUnknown(path: medium.path, error.reason) }
        isOwn = false
      }
      if !isOwn {
        try medium.requireVacant()
        throw .io(FileSystemError(EEXIST), "make", path: medium.path)
      }
    case .unconfirmed(let error): throw .unconfirmed(error, path: medium.path)
    }
    let pin = VaultPin(vault, keys, Checkpoint(sequence: 0, tailTag: .zero)).identity.description
    guard options.knownVaultsDirectory != nil else { return (false, pin) }
    do throws(SecretError) {
      var options = options
      options.pins = []
      var known = KnownVaults(options: options, environment: environment, shared: SharedSnapshot())
      let file = try VaultFile(medium.open())
      try known.trustAndPublish(
        VaultSnapshot(file, keys: keys), (options.firstUsePolicy ?? .strict).recorded, isDetached: false)
      return (true, pin)
    } catch {
      // The vault exists, so this is not an error.
      return (false, pin)
    }
  }
}
