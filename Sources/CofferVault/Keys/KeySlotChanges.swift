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

  func addKeySlot(
    _ credential: borrowing VaultCredential, label: String
  ) throws(SecretError) -> VaultKeySlot {
    let (file, keys) = try read { vault throws(SecretError) in (vault.file, vault.keys) }
    try requireNew(credential, for: file)
    let slot = try makeSlot(credential, for: keys, file.header, label: label)
    try rewrite { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys)
      guard vault.file.header.slots.count < Layout.maximumKeySlots else {
        throw SecretError(
          .tooLarge, "The vault has \(Layout.maximumKeySlots) key slots, the largest number possible.",
          advice: "Remove one first.")
      }
      changes.slots.append(slot)
    }
    return VaultKeySlot(slot)
  }

  func replaceKeySlot(
    id: String, with credential: borrowing VaultCredential, label: String?
  ) throws(SecretError) -> VaultKeySlot {
    let (file, keys) = try read { vault throws(SecretError) in (vault.file, vault.keys) }
    let old = try Self.slot(id, in: file.header.slots)
    try requireNew(credential, for: file, except: old.id)
    let slot = try makeSlot(credential, for: keys, file.header, label: label ?? old.label)
    try rewrite { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys)
      _ = try Self.slot(id, in: vault.file.header.slots)
      changes.slots = changes.slots.map { $0.id.hex == id ? slot : $0 }
    }
    return VaultKeySlot(slot)
  }

  /// Changes the master key, and wraps the new one for every slot except those of `removedIDs`.
  func rekey(
    without removedIDs: Set<String>, credentials: [any VaultCredentialSource]
  ) throws(SecretError) {
    let (file, keys) = try read { vault throws(SecretError) in (vault.file, vault.keys) }
    for id in removedIDs.sorted() { _ = try Self.slot(id, in: file.header.slots) }
    let staying = file.header.slots.filter { !removedIDs.contains($0.id.hex) }
    guard !staying.isEmpty else {
      throw SecretError(
        .conflict, "Without a key slot no credential could open the vault.", advice: "Add another one first.")
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

  /// Throws `.alreadyExists` if the credential opens a slot. `replaced` is the slot that the new one replaces.
  private func requireNew(
    _ credential: borrowing VaultCredential, for file: VaultFile, except replaced: Bytes16? = nil
  ) throws(SecretError) {
    guard let slot = try chain.slot(openedBy: credential, of: file), slot.id != replaced else { return }
    throw SecretError(
      .alreadyExists, "The credential opens the key slot \(slot.id.hex) already.",
      advice: "Nothing was changed.")
  }

  /// Makes a slot before the vault is locked, because stretching a passphrase takes long.
  private func makeSlot(
    _ credential: borrowing VaultCredential, for keys: DerivedKeys, _ header: Header, label: String
  ) throws(SecretError) -> KeySlot {
    try KeySlot.make(
      credential, for: keys, vault: header.vaultID, label: label, options: chain.options,
      environment: environment)
  }

  private static func slot(_ id: String, in slots: [KeySlot]) throws(SecretError) -> KeySlot {
    guard let slot = slots.first(where: { $0.id.hex == id }) else {
      throw SecretError(.configuration, "The vault has no key slot \(id).", advice: "List the slots.")
    }
    return slot
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
