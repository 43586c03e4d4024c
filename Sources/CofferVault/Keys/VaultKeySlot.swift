internal import CofferVaultFormat
public import FoundationEssentials

/// One way to open a vault, as its header describes it.
public struct VaultKeySlot: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    /// A passphrase, stretched over `memory` bytes with so many passes.
    case passphrase(memory: Int, passes: Int)
    /// A 32-byte key.
    case key
    /// Made by a later version of Coffer.
    case unknown(type: UInt8)
  }
  /// 32 lower-case hexadecimal digits.
  public let id: String
  public let kind: Kind
  public let created: Date
  /// What its maker called it: at most 64 bytes. It is not encrypted.
  public let label: String

  package init(id: String, kind: Kind, created: Date, label: String) {
    self.id = id
    self.kind = kind
    self.created = created
    self.label = label
  }

  init(_ slot: KeySlot) {
    id = slot.id.hex
    created = Timestamp.date(slot.created)
    label = slot.label
    kind =
      switch slot.parameters {
      case .key: .key
      case .passphrase(let passes, let memory): .passphrase(memory: Int(memory) * 1024, passes: Int(passes))
      case .unknown(let type): .unknown(type: type)
      }
  }
}
