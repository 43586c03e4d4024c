internal import CofferCore

/// Sizes and offsets that the format fixes, in bytes unless a name says otherwise. All are from `VaultFormat.md`.
package enum Layout {
  package static let magic: [UInt8] = [0x89, 0x43, 0x4F, 0x46, 0x0D, 0x0A, 0x1A, 0x0A]
  /// The magic after a program has converted its line ends: CR LF to LF, and LF to CR LF.
  package static let convertedMagics: [[UInt8]] = [
    [0x89, 0x43, 0x4F, 0x46, 0x0A, 0x1A, 0x0A], [0x89, 0x43, 0x4F, 0x46, 0x0D, 0x0D, 0x0A, 0x1A, 0x0D, 0x0A],
    [0x89, 0x43, 0x4F, 0x46, 0x0D, 0x0A, 0x1A, 0x0D, 0x0A],
  ]
  package static let version: UInt32 = 1
  /// Every `u64` is below this limit.
  package static let numberLimit = 1 << 62
  /// The unit that the header is padded to, and the size of a commit slot and of the page of leases.
  package static let pageSize = 4096
  package static let maximumHeaderLength = 1 << 20
  /// The header up to its key slots.
  package static let headerPrefixLength = 64
  /// The master key commitment and the MAC, which end the header.
  package static let headerSuffixLength = 64
  package static let maximumKeySlots = 240
  package static let maximumSlotLabelLength = 64
  /// Both commit slots and the page of leases, between the header and the base.
  package static let pagesLength = 3 * pageSize
  package static let maximumLeases = 100

  package static let nonceLength = 24
  /// The difference between a seal's length and its plaintext's: nonce and tag.
  package static let sealOverhead = 40

  /// The number of bytes at the start of a frame that hold the length of its metadata.
  package static let framePrefixLength = 4
  /// The unit that metadata and values are padded to.
  package static let paddingUnit = 32
  package static let maximumValueLength = 16 * 1024 * 1024

  /// A writer begins a new block when the plaintext of the current one would exceed this length.
  package static let blockTarget = 16_384
  /// The longest plaintext of a block and of the root: 1 MiB. So a base has at most about 18,700 blocks.
  package static let maximumPartLength = 1 << 20
  /// The root up to its fields.
  package static let rootPrefixLength = 72
  /// The entry of a block in the root.
  package static let rootEntryLength = 56
  /// The entry of an item in the directory of its block.
  package static let directoryEntryLength = 28
  /// The largest number of recent changes, and of taken ones, that a root lists. A writer lists at most half as
  /// many recent ones, so that a merge can list those of both sides.
  package static let maximumRecentChanges = 2048
  /// What `trust --advance` adds to the sequence: more changes than any copy that was lost can have had.
  package static let advance = 1 << 20
  /// The most bytes that the unknown fields of a record or of the root have together.
  package static let maximumUnknownFields = 65_536
  package static let maximumFormerKeySlots = 256
  /// The largest number of former master keys that the root lists.
  package static let maximumLineage = 64

  /// The longest tail that a reader accepts, values not counted: 1 MiB.
  package static let maximumReplayLength = 1 << 20
  /// The length of the tail, values not counted, above which a writer rewrites a file whose base ends at `baseEnd`. It
  /// weighs the tail, which every process that opens the vault reads, against the base, which a rewrite writes.
  package static func replayTarget(baseEnd: Int) -> Int {
    max(32_768, min(baseEnd / 128, maximumReplayLength))
  }

  /// The length of `count` bytes with their padding, which is at least one byte.
  package static func padded(_ count: Int) -> Int { (count / paddingUnit + 1) * paddingUnit }

  /// Whether `length` is the length of a sealed value.
  package static func isSealedValueLength(_ length: Int) -> Bool {
    let padded = length - sealOverhead
    return padded > 0 && padded % paddingUnit == 0 && padded <= self.padded(maximumValueLength)
  }
}
