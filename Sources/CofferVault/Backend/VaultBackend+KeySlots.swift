package import CofferCore
internal import CofferVaultFormat

// Key slots, and changes of the master key.

extension VaultBackend {
  /// Returns the sequence of the last change, and the number of master keys that the vault had before, 64 at most.
  /// Throws an error of the vault.
  package func generation() throws(SecretError) -> (change: Int, formerKeys: Int) {
    try read { vault throws(SecretError) in
      guard let lineage = vault.base.settings.lineage else { return (vault.state.sequence, 0) }
      let keys = try vault.keys.openLineage(lineage, vault: vault.file.header.vaultID)
      return (vault.state.sequence, keys.count / 32)
    }
  }

  /// Returns the key slots that were removed, in the order of their removal: the last 256. Throws an error of the
  /// vault.
  package func formerKeySlots() throws(SecretError) -> [FormerVaultKeySlot] {
    try read { vault in
      vault.base.settings.formerSlots.map { (VaultKeySlot($0), Timestamp.date($0.removed), !$0.isTrace) }
    }
  }

  /// Opens the vault, and each key slot that one of the vault's own credentials or of `credentials` fits.
  ///
  /// A change of the master key that gets the result does not stretch a passphrase again. To add slots to an earlier
  /// result, pass it as `opened`: then only `credentials` are used, and only for the slots that are not in `opened`.
  /// The vault's own sources that may show a prompt are used only until the vault is open. Slots whose cost exceeds the
  /// limits are not tried.
  ///
  /// Throws what a source throws, and an error of the vault.
  package func openKeySlots(
    with credentials: [VaultCredentialSource] = [], adding opened: OpenedKeySlots? = nil
  ) throws(SecretError) -> OpenedKeySlots {
    try withSession { session throws(SecretError) in
      try session.openKeySlots(with: credentials, adding: opened, unlocking, .slotsWithoutFurtherPrompts)
    }
  }

  /// Adds a key slot for `credential`. Returns the new slot.
  ///
  /// `label` is at most 64 bytes of UTF-8 and is not encrypted. Throws `.alreadyExists` if the credential opens the
  /// vault already, `.tooLarge` if the vault has 240 slots or its passphrases would cost too much together,
  /// `.invalidKey` for a malformed credential, `.unsupported` for a post-quantum recipient if libsodium is too old,
  /// `.invalidMetadata` for a malformed label, `.configuration` if the options set a cost below the minimum,
  /// `.conflict` if another process changes the master key during the call, and an error of the vault.
  @discardableResult
  package func addKeySlot(_ credential: VaultCredential, label: String = "") throws(SecretError) -> VaultKeySlot {
    try withSession { session throws(SecretError) in
      try session.addKeySlot(credential, label: label, unlocking)
    }
  }

  /// Adds a key slot for each of `recipients` that has none yet, all of them in one step. Returns the new slots.
  ///
  /// Each new slot gets the `label`. Throws what ``addKeySlot(_:label:)`` throws, but a recipient that already has a
  /// slot is not an error.
  @discardableResult
  package func addKeySlots(for recipients: [VaultRecipient], label: String = "") throws(SecretError) -> [VaultKeySlot] {
    try withSession { session throws(SecretError) in
      try session.addKeySlots(for: recipients, label: label, unlocking)
    }
  }

  /// Replaces the key slot `id` by one for `credential`. Returns the new slot.
  ///
  /// If `opened` is given, the vault gets a new master key; `opened` must have the keys of all other slots. Otherwise
  /// the master key stays the same: whoever has an old copy of the file and the old credential can read the present
  /// file as well.
  ///
  /// The label stays the same if `label` is `nil`. Throws `.configuration` if there is no such slot, `.locked` if
  /// `opened` has no key of another slot, and what ``addKeySlot(_:label:)`` throws.
  @discardableResult
  package func replaceKeySlot(
    id: String, with credential: VaultCredential, label: String? = nil, opened: OpenedKeySlots? = nil
  ) throws(SecretError) -> VaultKeySlot {
    try withSession { session throws(SecretError) in
      try session.addKeySlot(credential, label: label, replacing: id, unlocking, rekeying: opened)
    }
  }

  /// Removes the key slots `ids`, changes the master key and encrypts everything again.
  ///
  /// A program that had the credential of a slot may have kept the old master key. For the new master key, each slot
  /// that stays needs its own credential, from the vault's own sources or from the result of
  /// ``openKeySlots(with:adding:)``. The slot of a recipient needs none. A removed slot needs none either: slots whose
  /// credentials are lost can be removed together. Other programs that have an earlier pin of the vault then refuse it:
  /// see ``VaultBackend/pin()``.
  ///
  /// Throws `.configuration` if there is no such slot, `.locked` if credentials are missing, `.costLimitExceeded` if
  /// the cost of a slot that stays exceeds the limits, `.unsupported` if a post-quantum recipient stays and libsodium
  /// is too old, `.conflict` if no slot would stay, and an error of the vault. If it throws, nothing was changed,
  /// unless the error says that the change is in the vault and only the last barrier failed.
  package func removeKeySlots(ids: Set<String>, opened: OpenedKeySlots? = nil) throws(SecretError) {
    try withSession { session throws(SecretError) in
      var slots = opened ?? OpenedKeySlots()
      if opened == nil { slots = try session.openKeySlots(with: [], adding: nil, unlocking, .slots) }
      try session.rekey(without: ids, slots, unlocking)
    }
  }

  /// Gives the vault another master key, and writes the vault anew. A copy of the former master key does not open later
  /// values.
  ///
  /// Every key slot stays. Each one must be the slot of a recipient, or the vault's own sources or `opened` must have
  /// its key; otherwise throws `.locked`. Throws `.conflict` if another process has changed the slots meanwhile, and an
  /// error of the vault. If it throws, nothing was changed, unless the error says that the change is in the vault and
  /// only the last barrier failed.
  package func rekey(opened: OpenedKeySlots? = nil) throws(SecretError) {
    try removeKeySlots(ids: [], opened: opened)
  }
}
