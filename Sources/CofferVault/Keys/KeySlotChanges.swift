internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Returns the ids of the slots that the vault's own credentials or `credentials` open.
  func keySlots(openedBy credentials: [any VaultCredentialSource]) throws(SecretError) -> Set<String> {
    try read { vault throws(SecretError) in
      var ids: Set<String> = []
      try chain.appending(credentials).open(
        vault.file.header.slots, of: vault.file, mayPrompt: mayPrompt
      ) { slot, _, _ in
        ids.insert(slot.id.hex)
        return true
      }
      return ids
    }
  }

  /// Adds a slot for `credential`, or replaces the slot `replacedID`. Without a `label` it keeps the replaced
  /// one's. Throws `.alreadyExists` if the credential opens another slot.
  func addKeySlot(
    _ credential: borrowing VaultCredential, label: String?, replacing replacedID: String? = nil
  ) throws(SecretError) -> VaultKeySlot {
    let (file, keys) = try read { vault throws(SecretError) in (vault.file, vault.keys) }
    let replaced = try replacedID.map { id throws(SecretError) in
      file.header.slots[try Self.index(of: id, in: file.header.slots)]
    }
    if let opened = try chain.slot(openedBy: credential, of: file), opened.id != replaced?.id {
      throw SecretError(
        .alreadyExists, "The credential opens the key slot \(opened.id.hex) already.",
        advice: "Nothing was changed.")
    }
    func others(_ slots: [KeySlot]) -> [KeySlot] { slots.filter { $0.id != replaced?.id } }
    // Made before the vault is locked, because stretching a passphrase takes long.
    let slot = try KeySlot.make(
      credential, for: keys, vault: file.header.vaultID, label: label ?? replaced?.label ?? "",
      beside: others(file.header.slots), options: chain.options, environment: environment)
    try rewrite { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys)
      if let cost = slot.scheme?.cost {
        try DerivationBudget.requireRoom(for: cost, beside: others(changes.slots), chain.options)
      }
      if let replacedID {
        changes.slots[try Self.index(of: replacedID, in: changes.slots)] = slot
      } else if changes.slots.count < Layout.maximumKeySlots {
        changes.slots.append(slot)
      } else {
        throw SecretError(
          .tooLarge, "The vault has \(Layout.maximumKeySlots) key slots, the largest number possible.",
          advice: "Remove one first.")
      }
    }
    return VaultKeySlot(slot)
  }

  /// Changes the master key, and wraps the new one for every slot except those of `removedIDs`.
  func rekey(
    without removedIDs: Set<String>, credentials: [any VaultCredentialSource]
  ) throws(SecretError) {
    let (file, keys) = try read { vault throws(SecretError) in (vault.file, vault.keys) }
    for id in removedIDs.sorted() { _ = try Self.index(of: id, in: file.header.slots) }
    let staying = file.header.slots.filter { !removedIDs.contains($0.id.hex) }
    guard !staying.isEmpty else {
      throw SecretError(
        .conflict, "Without a key slot no credential could open the vault.", advice: "Add another one first.")
    }
    let newKeys = DerivedKeys(randomness: environment.randomness)
    var rewrapped: [Bytes16: KeySlot] = [:]
    let misses = try chain.appending(credentials).open(staying, of: file, mayPrompt: mayPrompt) {
      slot, key, _ throws(SecretError) in
      rewrapped[slot.id] = try key.wrap(
        newKeys.master, vault: file.header.vaultID, slotHeader: slot.header,
        randomness: environment.randomness)
      return true
    }
    let slots = staying.compactMap { rewrapped[$0.id] }
    guard slots.count == staying.count else {
      if let refusal = misses.refusals.first(where: { rewrapped[$0.slot] == nil }) { throw refusal.error }
      let missing = staying.filter { rewrapped[$0.id] == nil }
        .map { $0.label.isEmpty ? $0.id.hex : "\($0.id.hex) (\($0.label))" }
      throw SecretError(
        .locked,
        "Every key slot that stays needs its credential to receive the new master key. Missing: "
          + "\(missing.joined(separator: ", ")).",
        advice: "Give the missing credentials, or remove those slots as well. A removed slot needs none.")
    }
    try rewrite { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys)
      guard vault.file.header.slots.map(\.id) == file.header.slots.map(\.id) else {
        throw slotsChanged
      }
      (changes.slots, changes.keys) = (slots, newKeys)
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
