package import CofferCore
package import CofferVaultFormat

/// The 32-byte secret of one key slot. It wraps master keys and unwraps them. Copies share the secret.
package struct SlotKey: Sendable {
  private let secret: SecretBytes

  package init(_ secret: SecretBytes) { self.secret = secret }

  /// Returns the key that wraps the master key in one slot, and the commitment to it.
  private func derive(vault: Bytes16, slotHeader: [UInt8]) -> (key: SecretBytes, commitment: [UInt8]) {
    let both = SecretBytes(count: 64) {
      BLAKE2b.hash(HashedMessage.slotKey(vault: vault, slotHeader: slotHeader).span, key: secret, into: $0)
    }
    return both.withBytes { both in
      (SecretBytes(both.extracting(first: 32)), both.extracting(last: 32).withUnsafeBytes { Array($0) })
    }
  }

  /// Makes a slot with the header `slotHeader` that wraps `master`.
  package func wrap(
    _ master: SecretBytes, vault: Bytes16, slotHeader: [UInt8], randomness: any Randomness
  ) throws(SecretError) -> KeySlot {
    let derived = derive(vault: vault, slotHeader: slotHeader)
    let data = HashedMessage.wrappedKey(vault: vault, slotHeader: slotHeader)
    let wrapped = master.withBytes {
      Sodium.seal($0, associatedData: data, key: derived.key, randomness: randomness)
    }
    return try KeySlot(header: slotHeader, commitment: derived.commitment, wrappedKey: wrapped)
  }

  /// Returns the master key in `slot`, or `nil` if the slot has another secret. Throws `.tampered` if the slot has this
  /// secret and its wrapped key is damaged.
  package func unwrap(_ slot: KeySlot, vault: Bytes16) throws(SecretError) -> SecretBytes? {
    let derived = derive(vault: vault, slotHeader: slot.header)
    guard Sodium.isEqual(derived.commitment, slot.commitment) else { return nil }
    let data = HashedMessage.wrappedKey(vault: vault, slotHeader: slot.header)
    var isAuthentic = false
    let master = SecretBytes(count: 32) {
      isAuthentic = Sodium.open(slot.wrappedKey.span, associatedData: data, key: derived.key, into: $0)
    }
    guard isAuthentic else { throw .tampered("a key slot's wrapped key is not authentic") }
    return master
  }
}
