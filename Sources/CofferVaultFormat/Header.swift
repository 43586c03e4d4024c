package import CofferCore

/// The header of a vault's file, parsed and not yet authenticated.
package struct Header: Sendable {
  /// A rewrite keeps the feature bits, even if this version of Coffer does not know them.
  package var readOnlyCompatible: UInt32 = 0
  package var compatible: UInt32 = 0
  package var vaultID: Bytes16
  /// A fresh id for each file that takes the vault's place.
  package var fileID = Bytes16.zero
  package var slots: [KeySlot]
  package var masterCommitment: [UInt8] = []
  package var mac: [UInt8] = []

  package init(vaultID: Bytes16, slots: [KeySlot]) { (self.vaultID, self.slots) = (vaultID, slots) }

  /// Returns the header's length without its padding. `bytes` are the first bytes of the file. Throws `.notAVault`,
  /// `.unsupportedVersion` or `.tampered`.
  package static func length(ofHeaderBeginning bytes: [UInt8]) throws(SecretError) -> Int {
    guard bytes.starts(with: Layout.magic) else {
      throw SecretError(.notAVault, "The file is not a vault.", advice: "Check the path.")
    }
    var reader = ByteReader(bytes, from: Layout.magic.count, part: "the header")
    let version = try reader.u32()
    let incompatible = try reader.u32()
    guard version == Layout.version, incompatible == 0 else {
      throw SecretError(
        .unsupportedVersion, "The vault was written by a later version of Coffer.",
        advice: "Update Coffer to open it.")
    }
    _ = try reader.range(8)
    let length = Int(try reader.u32())
    guard length <= Layout.maximumHeaderLength,
      length >= Layout.headerPrefixLength + Layout.headerSuffixLength
    else { throw reader.failure("has a forbidden length") }
    return length
  }

  /// Returns the length of a header of `length` bytes with its padding.
  package static func paddedLength(_ length: Int) -> Int {
    (length + Layout.pageSize - 1) / Layout.pageSize * Layout.pageSize
  }

  /// Parses the header with its padding. Throws like ``length(ofHeaderBeginning:)``.
  package init(parsing bytes: [UInt8]) throws(SecretError) {
    let length = try Self.length(ofHeaderBeginning: bytes)
    guard bytes.count == Self.paddedLength(length) else { throw .tampered("the header is cut short") }
    var reader = ByteReader(bytes, from: 16, part: "the header")
    readOnlyCompatible = try reader.u32()
    compatible = try reader.u32()
    _ = try reader.u32()
    vaultID = try reader.bytes16()
    fileID = try reader.bytes16()
    let slotCount = Int(try reader.u8())
    try reader.zeros(3)
    guard (1...Layout.maximumKeySlots).contains(slotCount) else { throw reader.failure("has \(slotCount) key slots") }
    slots = []
    var (ids, recipients) = (Set<Bytes16>(), Set<ArraySlice<UInt8>>())
    let slotsEnd = length - Layout.headerSuffixLength
    for _ in 0..<slotCount {
      let slot = try KeySlot(parsing: bytes, from: reader.position, to: slotsEnd)
      _ = try reader.range(slot.bytes.count)
      if slot.isKnown, !ids.insert(slot.id).inserted { throw reader.failure("has two key slots with one id") }
      // Otherwise the removal of one slot would leave its recipient the other.
      if let recipient = slot.parameters?.recipient, !recipients.insert(recipient).inserted {
        throw reader.failure("has two key slots for one recipient")
      }
      slots.append(slot)
    }
    guard reader.position == slotsEnd else { throw reader.failure("has key slots of a wrong length") }
    masterCommitment = try reader.array(32)
    mac = try reader.array(32)
    try reader.zeros(bytes.count - length)
  }

  /// The bytes that the MAC covers: the header up to the MAC.
  package var authenticatedBytes: [UInt8] {
    let length = Layout.headerPrefixLength + Layout.headerSuffixLength + slots.reduce(0) { $0 + $1.bytes.count }
    var bytes = encode(
      Layout.magic, Layout.version, 0 as UInt32, readOnlyCompatible, compatible, UInt32(length), vaultID, fileID,
      UInt8(slots.count), zeros(3))
    // 240 slots may take half a megabyte.
    bytes.reserveCapacity(length)
    for slot in slots { bytes += slot.bytes }
    bytes += masterCommitment
    return bytes
  }

  /// The header with its MAC and its padding.
  package var bytes: [UInt8] {
    let bytes = authenticatedBytes + mac
    return encode(bytes, zeros(Self.paddedLength(bytes.count) - bytes.count))
  }
}
