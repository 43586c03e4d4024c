internal import CofferCore
internal import CofferVaultFormat
package import FoundationEssentials

/// One way to open a vault, as its header describes it.
package struct VaultKeySlot: Hashable, Sendable {
  /// The cost of a derivation.
  package struct Cost: Hashable, Sendable {
    /// Bytes.
    package let memory: Int
    /// Passes of Argon2id over the memory.
    package let passes: Int

    /// The work of one derivation, in bytes: the memory times the passes. The time grows with it.
    var work: Int {
      let (work, overflow) = memory.multipliedReportingOverflow(by: passes)
      return overflow ? .max : work
    }
  }

  /// 32 lower-case hexadecimal digits; `slot-` and the position in the header, from 1 on, if ``kind`` is `nil`.
  package let id: String
  /// The kind of credential that opens the slot, or `nil` for a slot that a later version of Coffer made.
  package let kind: VaultCredential.Kind?
  /// The recipient that the slot is for, or `nil`. A new master key is wrapped for it without its identity.
  package let recipient: VaultRecipient?
  /// The cost of trying a credential, or `nil` if it is negligible.
  package let cost: Cost?
  /// When the slot was made, by the clock of its maker.
  package let created: Date
  /// The name that the slot was given: at most 64 bytes of UTF-8. It is not encrypted.
  package let label: String

  /// `index` is the position in the header, from 0 on.
  init(_ slot: KeySlot, at index: Int) {
    id = slot.isKnown ? slot.id.hex : "slot-\(index + 1)"
    recipient = slot.recipient
    kind = slot.parameters?.kind.credentialKind
    cost = slot.parameters?.cost
    created = Timestamp.date(slot.created)
    label = slot.label
  }

  /// The vault keeps only the beginning of the recipient.
  init(_ former: FormerKeySlot) {
    let type = KeySlotParameters.Kind(rawValue: former.type)
    (id, kind, cost) = (former.id.hex, type?.credentialKind, nil)
    recipient =
      type?.isForRecipients == true
      ? VaultRecipient(key: former.recipient, isPostQuantum: type == .hybrid) : nil
    (created, label) = (Timestamp.date(former.created), former.label)
  }
}

/// A key slot that was removed. Of a post-quantum recipient, only the beginning is known. If there is no new master
/// key, whoever had the slot's credential may still know the present one.
package typealias FormerVaultKeySlot = (slot: VaultKeySlot, removed: Date, hasNewMasterKey: Bool)
