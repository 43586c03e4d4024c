package import CofferVaultFormat
package import CofferCore

/// The secret of one key slot: a key as it is, or a passphrase stretched. It wraps and unwraps master keys.
package struct SlotKey: ~Copyable {
  private let secret: SecretBytes
  private static let context = Array("coffer-key-slot".utf8)

  /// The longest passphrase, in bytes: more is a mistake, such as a wrong file.
  package static let maximumPassphraseLength = 1 << 20

  /// The secret that `credential` gives for a slot's parameters, or `nil` where it is of another kind.
  ///
  /// Throws `.costLimitExceeded` before a derivation above `limits` begins, `.tampered` for a cost that no
  /// writer sets, and `.io` where the memory cannot be had, or the
  /// process would be killed for taking it.
  package init?(
    _ credential: borrowing VaultCredential,
    parameters: KeySlot.Parameters,
    salt: [UInt8],
    limits: VaultOptions
  ) throws(SecretError) {
    switch credential {
    case .key(let key):
      guard parameters == .key else { return nil }
      secret = key.copy()
    case .passphrase(let passphrase):
      guard case .passphrase(let passes, let memory) = parameters else { return nil }
      let bytes = Int(memory) * 1024
      guard passes >= 1, bytes >= 8192 else { throw .tampered("a key slot's cost is below the least") }
      guard bytes <= limits.maximumPassphraseMemory, passes <= limits.maximumPassphrasePasses else {
        throw SecretError(
          .costLimitExceeded,
          "A passphrase of this vault asks for \(bytes >> 20) MiB of memory and \(passes) passes.",
          advice: "If you made it so, raise the limits; otherwise do not trust the file."
        )
      }
      let left = limits.memoryLeft()
      guard bytes <= left ?? .max,
        let stretched = Sodium.stretch(passphrase, salt: salt, passes: Int(passes), memory: bytes)
      else {
        let some = left.map { ", and \($0 >> 20) MiB are left here" } ?? ""
        throw SecretError(
          .io,
          "There is not enough memory to stretch the passphrase: it takes \(bytes >> 20) MiB\(some).",
          advice: "Free some or raise the limit, or open the vault with a key file."
        )
      }
      secret = stretched
    }
  }

  /// What this secret gives for one slot: the key that wraps, and the commitment that goes with it.
  private struct Derived: ~Copyable {
    let key: SecretBytes
    let commitment: [UInt8]
  }

  private borrowing func derive(vaultID: Bytes16, slotHeader: [UInt8]) -> Derived {
    let both = SecretBytes(count: 64) {
      Sodium.keyedHash(Self.message(vaultID, slotHeader), key: secret, into: $0)
    }
    return both.withBytes { both in
      Derived(
        key: SecretBytes(copying: both.extracting(first: 32)),
        commitment: both.extracting(last: 32).withUnsafeBytes { Array($0) }
      )
    }
  }

  private static func message(_ vaultID: Bytes16, _ slotHeader: [UInt8]) -> [UInt8] {
    var message = context
    vaultID.append(to: &message)
    return message + slotHeader
  }

  private static func associatedData(_ vaultID: Bytes16, _ slotHeader: [UInt8]) -> [UInt8] {
    var data: [UInt8] = []
    vaultID.append(to: &data)
    return data + slotHeader
  }

  /// The master key in `slot`, or `nil` where this secret is not the slot's. Throws `.tampered` where it
  /// is, and the wrapped key is damaged.
  package borrowing func unwrap(_ slot: KeySlot, vaultID: Bytes16) throws(SecretError) -> SecretBytes? {
    let derived = derive(vaultID: vaultID, slotHeader: slot.slotHeader)
    guard Sodium.isEqual(derived.commitment, slot.commitment) else { return nil }
    var isAuthentic = false
    let master = SecretBytes(count: 32) {
      isAuthentic = Sodium.open(
        slot.wrappedKey.span,
        associatedData: Self.associatedData(vaultID, slot.slotHeader),
        key: derived.key,
        into: $0
      )
    }
    guard isAuthentic else { throw .tampered("a key slot's wrapped key is not authentic") }
    return master
  }

  /// A slot with this secret for `master`.
  package borrowing func wrap(
    _ master: borrowing SecretBytes,
    vaultID: Bytes16,
    slotHeader: [UInt8],
    randomness: any Randomness
  ) throws(SecretError) -> KeySlot {
    let derived = derive(vaultID: vaultID, slotHeader: slotHeader)
    let wrapped = master.withBytes {
      Sodium.seal(
        $0,
        associatedData: Self.associatedData(vaultID, slotHeader),
        key: derived.key,
        randomness: randomness
      )
    }
    return try KeySlot(slotHeader: slotHeader, commitment: derived.commitment, wrappedKey: wrapped)
  }
}
