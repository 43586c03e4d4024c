internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Adds a slot for `credential`, or replaces the slot `replacedID`. Without a `label` it keeps the replaced
  /// one's. Throws `.alreadyExists` if the credential opens another slot.
  func addKeySlot(
    _ credential: borrowing VaultCredential, label: String?, replacing replacedID: String? = nil,
    _ unlocking: Unlocking
  ) throws(SecretError) -> VaultKeySlot {
    let (file, keys) = try read(unlocking) { vault throws(SecretError) in (vault.file, vault.keys) }
    let replaced = try replacedID.map { id throws(SecretError) in
      file.header.slots[try Self.index(of: id, in: file.header.slots)]
    }
    if let opened = try chain.slot(openedBy: credential, of: file, except: replaced) {
      throw SecretError(
        .alreadyExists, "The credential opens the key slot \(opened.id.hex) already.",
        advice: "Nothing was changed.")
    }
    func others(_ slots: [KeySlot]) -> [KeySlot] { slots.filter { $0.id != replaced?.id } }
    // Made before the vault is locked, because stretching a passphrase takes long.
    let slot = try KeySlot.make(
      credential, for: keys, vault: file.header.vaultID, label: label ?? replaced?.label ?? "",
      beside: others(file.header.slots), options: chain.options, environment: environment)
    try rewrite(unlocking) { vault, changes throws(SecretError) in
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

  /// Changes the master key, and wraps the new one for every slot except those of `removedIDs`. `opened` has the keys of
  /// the slots.
  func rekey(
    without removedIDs: Set<String>, _ opened: OpenedKeySlots, _ unlocking: Unlocking
  ) throws(SecretError) {
    let (file, keys) = try read(unlocking) { vault throws(SecretError) in (vault.file, vault.keys) }
    for id in removedIDs.sorted() { _ = try Self.index(of: id, in: file.header.slots) }
    let staying = file.header.slots.filter { !removedIDs.contains($0.id.hex) }
    guard !staying.isEmpty else {
      throw SecretError(
        .conflict, "Without a key slot no credential could open the vault.", advice: "Add another one first.")
    }
    let missing = staying.filter { opened[$0] == nil }
    guard missing.isEmpty else {
      for slot in missing { if let refusal = opened.refusals[slot.id] { throw refusal } }
      let names = missing.map { $0.label.isEmpty ? $0.id.hex : "\($0.id.hex) (\($0.label))" }
      throw SecretError(
        .locked,
        "Every key slot that stays needs its credential to receive the new master key. Missing: "
          + "\(names.joined(separator: ", ")).",
        advice: "Give the missing credentials, or remove those slots as well. A removed slot needs none.")
    }
    let newKeys = DerivedKeys(randomness: environment.randomness)
    var slots: [KeySlot] = []
    for slot in staying {
      guard let key = opened[slot] else { continue }
      slots.append(
        try key.wrap(
          newKeys.master, vault: file.header.vaultID, slotHeader: slot.header,
          randomness: environment.randomness))
    }
    try rewrite(unlocking) { vault, changes throws(SecretError) in
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
  private func requireUnchanged(_ vault: VaultSnapshot, _ keys: DerivedKeys) throws(SecretError) {
    guard vault.keys === keys else { throw slotsChanged }
  }

  private var slotsChanged: SecretError {
    SecretError(
      .conflict, "Another process changed the keys of the vault at \(path).",
      advice: "Nothing was changed here; try again.")
  }
}
