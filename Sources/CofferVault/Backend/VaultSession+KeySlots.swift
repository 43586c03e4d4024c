internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Adds a slot for `credential`, or replaces the slot `replacedID`. If `label` is `nil`, the replaced slot's is kept.
  /// With `opened`, changes the master key in the same step.
  func addKeySlot(
    _ credential: VaultCredential, label: String?, replacing replacedID: String? = nil,
    _ unlocking: Unlocking, rekeying opened: OpenedKeySlots? = nil
  ) throws(SecretError) -> VaultKeySlot {
    let (file, keys) = try read(unlocking) { ($0.file, $0.keys) }
    let replaced = try replacedID.map { id throws(SecretError) in
      file.header.slots[try Self.index(of: id, in: file.header.slots)]
    }
    if let slot = try chain.slot(openedBy: credential, of: file, except: replaced) {
      throw SecretError(.alreadyExists, "The credential already has a key slot: \(slot.id.hex).")
    }
    func others(_ slots: [KeySlot]) -> [KeySlot] { slots.filter { $0.id != replaced?.id } }
    let newKeys = opened == nil ? keys : DerivedKeys(randomness: environment.randomness)
    // Made before the vault is locked, because stretching a passphrase takes long.
    let slot = try KeySlot.make(
      credential, for: newKeys, vault: file.header.vaultID, label: label ?? replaced?.label ?? "",
      beside: others(file.header.slots), options: chain.options, environment: environment)
    let wrapped = try opened.map { opened throws(SecretError) in
      try wrap(newKeys, for: others(file.header.slots), of: file, opened)
    }
    try rewrite(unlocking) { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys, slotsOf: wrapped == nil ? nil : file)
      if let wrapped {
        changes.slots = file.header.slots.map { old in wrapped.first { $0.id == old.id } ?? old }
        changes.keys = newKeys
      }
      if let cost = slot.parameters?.cost {
        try DerivationBudget.requireRoom(for: cost, beside: others(changes.slots), chain.options)
      }
      if let replacedID {
        changes.slots[try Self.index(of: replacedID, in: changes.slots)] = slot
      } else {
        try KeySlot.requireRoom(for: changes.slots.count + 1)
        changes.slots.append(slot)
      }
    }
    return VaultKeySlot(slot, at: 0)
  }

  func addKeySlots(
    for recipients: [VaultRecipient], label: String, _ unlocking: Unlocking
  ) throws(SecretError) -> [VaultKeySlot] {
    let (file, keys) = try read(unlocking) { ($0.file, $0.keys) }
    var slots = try KeySlot.make(
      for: recipients, beside: file.header.slots, keys, vault: file.header.vaultID, label: label,
      options: chain.options, environment: environment)
    if slots.isEmpty { return [] }
    try rewrite(unlocking) { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys)
      // Another process may have added slots for some of the recipients by now.
      slots.removeAll { slot in changes.slots.contains { $0.recipient == slot.recipient } }
      changes.slots += slots
      try KeySlot.requireRoom(for: changes.slots.count)
    }
    return slots.map { VaultKeySlot($0, at: 0) }
  }

  /// Changes the master key, and wraps the new one for every slot except those of `removedIDs`. `opened` has the keys
  /// of the slots.
  func rekey(without removedIDs: Set<String>, _ opened: OpenedKeySlots, _ unlocking: Unlocking) throws(SecretError) {
    let (file, keys) = try read(unlocking) { ($0.file, $0.keys) }
    for id in removedIDs.sorted() { _ = try Self.index(of: id, in: file.header.slots) }
    let staying = file.header.slots.enumerated()
      .filter { !removedIDs.contains(VaultKeySlot($1, at: $0).id) }.map(\.element)
    guard !staying.isEmpty else {
      throw SecretError(
        .conflict, "Without a key slot no credential could open the vault.", advice: "Add another one first.")
    }
    let newKeys = DerivedKeys(randomness: environment.randomness)
    let slots = try wrap(newKeys, for: staying, of: file, opened)
    try rewrite(unlocking) { vault, changes throws(SecretError) in
      try requireUnchanged(vault, keys, slotsOf: file)
      (changes.slots, changes.keys) = (slots, newKeys)
    }
  }

  /// Wraps the master key of `keys` for `slots`. The slot of a recipient needs no key. If `opened` lacks the key of any
  /// other slot, throws the error from opening that slot, or `.locked`. Throws `.unsupported` if libsodium is too old
  /// for a recipient.
  private func wrap(
    _ keys: DerivedKeys, for slots: [KeySlot], of file: VaultFile, _ opened: OpenedKeySlots
  ) throws(SecretError) -> [KeySlot] {
    let missing = slots.filter { opened[$0] == nil && $0.recipient == nil }
    guard missing.isEmpty else {
      for slot in missing { if let refusal = opened.refusals[slot.id] { throw refusal } }
      let names = missing.map { slot in
        let id = VaultKeySlot(slot, at: file.header.slots.firstIndex { $0.bytes == slot.bytes } ?? 0).id
        return slot.label.isEmpty ? id : "\(id) (\(slot.label))"
      }
      throw SecretError(
        .locked,
        "A key slot that stays can get the new master key only with its credential. There is none for: "
          + "\(names.joined(separator: ", ")).",
        advice: "Give the missing credentials, or remove those slots too, which needs no credential.")
    }
    return try slots.map { slot throws(SecretError) in
      do throws(SecretError) {
        return try slot.rewrapped(opened[slot], for: keys, vault: file.header.vaultID, environment)
      } catch  where error.code == .invalidKey {
        throw SecretError(
          .invalidKey, "The recipient of the key slot \(slot.id.hex) is not a usable public key.",
          advice: "Remove the slot first.")
      }
    }.compactMap(\.self)
  }

  private static func index(of id: String, in slots: [KeySlot]) throws(SecretError) -> Int {
    guard let index = slots.indices.first(where: { VaultKeySlot(slots[$0], at: $0).id == id }) else {
      throw SecretError(.configuration, "The vault has no key slot \(id).", advice: "List the slots.")
    }
    return index
  }

  /// Throws `.conflict` if another process has changed the master key since a slot was made for it, or has added or
  /// removed a slot since `file` was read.
  private func requireUnchanged(
    _ vault: VaultSnapshot, _ keys: DerivedKeys, slotsOf file: VaultFile? = nil
  ) throws(SecretError) {
    let slots = (file ?? vault.file).header.slots
    guard vault.keys === keys, vault.file.header.slots.map(\.id) == slots.map(\.id) else {
      throw SecretError(.conflict, "Another process changed the keys of the vault at \(path).", advice: "Try again.")
    }
  }
}
