/// Sizes and places that the format fixes. The source of each is `VaultFormat.md`.
package enum Layout {
  package static let magic: [UInt8] = [0x89, 0x43, 0x4F, 0x46, 0x0D, 0x0A, 0x1A, 0x0A]
  package static let majorVersion: UInt16 = 1
  /// Every `u64` is below this.
  package static let numberLimit = 1 << 62
  /// The unit in which the header is padded, and the size of a commit slot.
  package static let pageSize = 4096
  package static let maximumHeaderLength = 65_536
  /// The header up to its key slots, and its two hashes at the end.
  package static let headerPrefixLength = 64
  package static let headerSuffixLength = 64
  package static let maximumKeySlots = 16
  package static let maximumSlotLabelLength = 64

  /// What a seal is longer than its plaintext: nonce and tag.
  package static let nonceLength = 24
  package static let sealOverhead = 40

  package static let frameHeaderLength = 24
  /// The unit in which metadata and values are padded.
  package static let paddingUnit = 32
  package static let maximumMetadataLength = 65_536
  package static let maximumValueLength = 16 * 1024 * 1024

  /// Where a writer begins a new block, and the largest a reader takes, in bytes of plaintext.
  package static let blockTarget = 16_384
  package static let maximumBlockLength = 1 << 20
  package static let rootPrefixLength = 24
  package static let rootEntryLength = 48

  /// `count` bytes with padding: there is always at least one byte of it.
  package static func padded(_ count: Int) -> Int { (count / paddingUnit + 1) * paddingUnit }
}
