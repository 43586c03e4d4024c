internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Returns the ids of the slots that the vault's own credentials or `credentials` open.
  func keySlots(openedBy credentials: [any VaultCredentialSource]) throws(SecretError) -> Set<String> {
    try read { vault throws(SecretError) in
      var ids: Set<String> = []
      try chain.appending(credentials).open(vault.file.header.slots, of: vault.file) { slot, _, _ in
        ids.insert(slot.id.hex)
        return true
      }
      return ids
    }
  }

  /// Adds a slot for `credential`, or replaces the slot `replacedID`. Without a `label` it keeps the replaced
  /// one's.
  func addKeySlot(
    _ credential: borrowing VaultCredential, label: String?, replacing replacedID: String? = nil
  ) throws(SecretError) -> VaultKeySlot {
    let (header, keys) = try read { vault throws(SecretError) in (vault.file.header, vault.keys) }
    let replaced = try replacedID.map { id throws(SecretError) in try Self.index(of: id, in: header.slots) }
    // Made before the vault is locked, because stretching a passphrase takes long.
    let slot = try KeySlot.make(
      credential, for: keys, vault: header.vaultID,
      label: label ?? replaced.map { header.slots[$0].label } ?? "", options: chain.options,
      environment: environment)
    try rewrite { vault throws(SecretError) in
      try requireUnchanged(vault, keys)
      var slots = vault.file.header.slots
      if let replacedID {
        slots[try Self.index(of: replacedID, in: slots)] = slot
      } else if slots.count < Layout.maximumKeySlots {
        slots.append(slot)
      } else {
        throw SecretError(
          .tooLarge, "The vault has \(Layout.maximumKeySlots) key slots, the largest number possible.",
          advice: "Remove one first.")
      }
      return (slots, keys)
    }
    return VaultKeySlot(slot)
  }

  /// Changes the master key, and wraps the new one for every slot except that of `removedID`.
  func rekey(
    without removedID: String?, credentials: [any VaultCredentialSource]
  ) throws(SecretError) {
    let (file, keys) = try read { vault throws(SecretError) in (vault.file, vault.keys) }
    if let removedID { _ = try Self.index(of: removedID, in: file.header.slots) }
    let staying = file.header.slots.filter { $0.id.hex != removedID }
    guard !staying.isEmpty else {
      throw SecretError(
        .conflict, "It is the vault's last key slot; without it no credential could open the vault.",
        advice: "Add another first.")
    }
    let newKeys = DerivedKeys(randomness: environment.randomness)
    var rewrapped: [Bytes16: KeySlot] = [:]
    let misses = try chain.appending(credentials).open(staying, of: file) {
      slot, key, _ throws(SecretError) in
      rewrapped[slot.id] = try key.wrap(
        newKeys.master, vault: file.header.vaultID, slotHeader: slot.header,
        randomness: environment.randomness)
      return true
    }
    var slots: [KeySlot] = []
    for slot in staying {
      guard let slot = rewrapped[slot.id] else {
        if let refusal = misses.refusals.first(where: { $0.slot == slot.id }) { throw refusal.error }
        throw SecretError(
          .locked,
          "Every key slot that stays must be given the new master key, and the credential of slot \(slot.id.hex) is missing.",
          advice: "Give that credential as well, or remove that slot first.")
      }
      slots.append(slot)
    }
    try rewrite { vault throws(SecretError) in
      try requireUnchanged(vault, keys)
      guard vault.file.header.slots.map(\.id) == file.header.slots.map(\.id) else {
        throw slotsChanged
      }
      return (slots, newKeys)
    }
  }

  private static func index(of id: String, in slots: [KeySlot]) throws(SecretError) -> Int {
    guard let index = slots.firstIndex(where: { $0.id.hex == id }) else {
      throw SecretError(.configuration, "The vault has no key slot \(id).", advice: "List the slots.")
    }
    return index
  }

  /// Throws `.conflict` if another process has changed the master key since a slot was made for it.
  private func requireUnchanged(_ vault: UnlockedVault, _ keys: DerivedKeys) throws(SecretError) {
    guard vault.keys === keys else { throw slotsChanged }
  }

  private var slotsChanged: SecretError {
    SecretError(
      .conflict, "Another process changed the keys of the vault at \(path).",
      advice: "Nothing was changed here; try again.")
  }
}
