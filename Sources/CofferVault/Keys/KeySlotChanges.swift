internal import CofferVaultFormat
package import CofferCore

extension VaultSession {
  package func addKeySlot(
    _ credential: borrowing VaultCredential,
    label: String
  ) throws(SecretError) -> VaultKeySlot {
    // Made before the lock is taken: stretching a passphrase takes long.
    let (vaultID, keys) = try read { vault throws(SecretError) in (vault.vault.header.vaultID, vault.keys) }
    let slot = try KeySlot.make(
      credential,
      for: keys,
      vaultID: vaultID,
      label: label,
      options: options,
      environment: environment
    )
    try rewrite { vault throws(SecretError) in
      try requireSame(vault, keys)
      guard vault.vault.header.slots.count < Layout.maximumKeySlots else {
        throw SecretError(
          .tooLarge,
          "The vault has \(Layout.maximumKeySlots) key slots, and can have no more.",
          advice: "Remove one first."
        )
      }
      return (vault.vault.header.slots + [slot], keys)
    }
    return VaultKeySlot(slot)
  }

  package func replaceKeySlot(
    id: String,
    with credential: borrowing VaultCredential,
    label: String?
  ) throws(SecretError) -> VaultKeySlot {
    let (header, keys) = try read { vault throws(SecretError) in (vault.vault.header, vault.keys) }
    let old = try Self.slot(id, in: header.slots)
    let slot = try KeySlot.make(
      credential,
      for: keys,
      vaultID: header.vaultID,
      label: label ?? old.label,
      options: options,
      environment: environment
    )
    try rewrite { vault throws(SecretError) in
      try requireSame(vault, keys)
      _ = try Self.slot(id, in: vault.vault.header.slots)
      return (vault.vault.header.slots.map { $0.id.hex == id ? slot : $0 }, keys)
    }
    return VaultKeySlot(slot)
  }

  /// A new master key for every slot but the one of `removedID`.
  package func rekey(
    without removedID: String?,
    others: [any VaultCredentialSource]
  ) throws(SecretError) {
    let (vault, keys) = try read { vault throws(SecretError) in (vault.vault, vault.keys) }
    if let removedID { _ = try Self.slot(removedID, in: vault.header.slots) }
    let staying = vault.header.slots.filter { $0.id.hex != removedID }
    guard !staying.isEmpty else {
      throw SecretError(
        .conflict,
        "It is the vault's last key slot; without it nothing could open the vault.",
        advice: "Add another first."
      )
    }
    let newKeys = DerivedKeys(randomness: environment.randomness)
    var rewrapped: [Bytes16: KeySlot] = [:]
    try slotSecrets(of: vault, others: others) { slot, secret throws(SecretError) in
      guard slot.id.hex != removedID else { return }
      rewrapped[slot.id] = try secret.wrap(
        newKeys.master,
        vaultID: vault.header.vaultID,
        slotHeader: slot.slotHeader,
        randomness: environment.randomness
      )
    }
    var slots: [KeySlot] = []
    for slot in staying {
      guard let slot = rewrapped[slot.id] else {
        throw SecretError(
          .locked,
          "A new master key must be given to every key slot that stays, and the credential of slot \(slot.id.hex) is missing.",
          advice: "Give that credential as well, or remove that slot first."
        )
      }
      slots.append(slot)
    }
    try rewrite { current throws(SecretError) in
      try requireSame(current, keys)
      guard current.vault.header.slots.map(\.id) == vault.header.slots.map(\.id) else {
        throw .slotsChanged(path: path)
      }
      return (slots, newKeys)
    }
  }

  private static func slot(_ id: String, in slots: [KeySlot]) throws(SecretError) -> KeySlot {
    guard let slot = slots.first(where: { $0.id.hex == id }) else {
      throw SecretError(.configuration, "The vault has no key slot \(id).", advice: "List the slots.")
    }
    return slot
  }

  /// Throws where someone else has changed the master key since a slot was made for it.
  private func requireSame(_ vault: UnlockedVault, _ keys: DerivedKeys) throws(SecretError) {
    guard vault.keys === keys else { throw .slotsChanged(path: path) }
  }
}

extension SecretError {
  fileprivate static func slotsChanged(path: String) -> SecretError {
    SecretError(
      .conflict,
      "Someone else changed the keys of the vault at \(path) meanwhile.",
      advice: "Nothing was changed; try again."
    )
  }
}
