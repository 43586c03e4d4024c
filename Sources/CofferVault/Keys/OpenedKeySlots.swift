internal import CofferCore
internal import CofferVaultFormat

/// The key slots of a vault that credentials have opened, with their keys in guarded memory.
///
/// ``VaultBackend/openKeySlots(with:adding:)`` makes one. A change of the master key takes the key of each slot from
/// it, so that no passphrase is stretched twice. Copies share the keys, which are wiped with the last of them.
package struct OpenedKeySlots: Sendable {
  /// The keys by the headers of their slots.
  private var keys: [[UInt8]: SlotKey] = [:]
  package private(set) var ids: Set<String> = []
  /// The keys of the vault, if a credential has opened it.
  var vaultKeys: DerivedKeys?

  /// The names of the sources that returned a key or a passphrase.
  var tried: [String] = []
  /// The errors of the slots that were passed over because of their cost, by their ids.
  var refusals: [Bytes16: SecretError] = [:]
  /// The error of the first source that should have had a credential for a slot, and had none.
  var failure: SecretError?
  /// Whether a source was not asked because it may show a prompt.
  var leftOutPrompt = false

  // The test of `isEmpty` saves copies of headers while a search has opened nothing.
  subscript(_ slot: KeySlot) -> SlotKey? { keys.isEmpty ? nil : keys[slot.header] }

  /// Adds the key if it opens the slot. Throws `.tampered` if the slot or the header is damaged.
  mutating func add(
    _ key: SlotKey, of slot: KeySlot, in file: VaultFile, _ randomness: any Randomness
  ) throws(SecretError) {
    guard let master = try key.unwrap(slot, vault: file.header.vaultID) else {
      // Only the slot of the identity's own recipient gets this far.
      if slot.recipient != nil { throw .tampered("the key slot of a recipient does not open") }
      return
    }
    if vaultKeys == nil {
      let candidate = DerivedKeys(
        master: master, randomness: randomness, origin: slot.recipient == nil ? .secret : .recipient, slot: slot.id)
      try candidate.authenticate(file.header)
      vaultKeys = candidate
    }
    keys[slot.header] = key
    ids.insert(slot.id.hex)
  }

  /// Uses a master key that a program has kept, unless it is obsolete because the vault has another one. Throws
  /// `.invalidKey` if it is malformed, and `.tampered` if the header is damaged.
  mutating func add(master: SecretBytes, of file: VaultFile, _ randomness: any Randomness) throws(SecretError) {
    guard master.count == DerivedKeys.masterLength else {
      throw SecretError(
        .invalidKey, "The master key is \(master.count) bytes long instead of \(DerivedKeys.masterLength).",
        advice: "Use a master key that the vault returned.")
    }
    let candidate = DerivedKeys(master: master, randomness: randomness, origin: .kept)
    guard vaultKeys == nil, candidate.isCommitted(to: file.header) else { return }
    try candidate.authenticate(file.header)
    vaultKeys = candidate
  }
}
