package import CofferCore

/// The header as it stands in the file, parsed and not yet authenticated.
package struct Header: Sendable {
  /// Feature bits this code does not know, kept as they were.
  package var minorVersion: UInt16 = 0
  package var readOnlyCompatible: UInt32 = 0
  package var compatible: UInt32 = 0
  package var vaultID: Bytes16
  package var fileID: Bytes16
  package var slots: [KeySlot]
  package var masterCommitment: [UInt8]
  package var mac: [UInt8]

  package init(
    vaultID: Bytes16,
    fileID: Bytes16,
    slots: [KeySlot],
    masterCommitment: [UInt8] = [],
    mac: [UInt8] = []
  ) {
    self.vaultID = vaultID
    self.fileID = fileID
    self.slots = slots
    self.masterCommitment = masterCommitment
    self.mac = mac
  }

  /// The header's length, from its first bytes. Throws `.notAVault`, `.unsupportedVersion` or `.tampered`.
  package static func length(ofHeaderBeginning bytes: [UInt8]) throws(SecretError) -> Int {
    guard bytes.starts(with: Layout.magic) else {
      throw SecretError(
        .notAVault,
        "The file is not a vault.",
        advice: "Check the path; nothing was changed."
      )
    }
    var reader = ByteReader(bytes, from: Layout.magic.count, part: "the header")
    let major = try reader.u16()
    _ = try reader.u16()
    let incompatible = try reader.u32()
    guard major == Layout.majorVersion, incompatible == 0 else {
      throw SecretError(
        .unsupportedVersion,
        "The vault was written by a later version of Coffer.",
        advice: "Update Coffer to open it."
      )
    }
    _ = try reader.range(8)
    let length = Int(try reader.u32())
    guard length <= Layout.maximumHeaderLength,
      length >= Layout.headerPrefixLength + Layout.headerSuffixLength
    else { throw reader.failure("gives itself a forbidden length") }
    return length
  }

  /// Parses the header with its padding: `bytes` is what `paddedLength` says of its length.
  package init(parsing bytes: [UInt8]) throws(SecretError) {
    let length = try Self.length(ofHeaderBeginning: bytes)
    guard bytes.count == Self.paddedLength(length) else { throw .tampered("the header is cut short") }
    var reader = ByteReader(bytes, from: 10, part: "the header")
    minorVersion = try reader.u16()
    _ = try reader.u32()
    readOnlyCompatible = try reader.u32()
    compatible = try reader.u32()
    _ = try reader.u32()
    vaultID = try reader.bytes16()
    fileID = try reader.bytes16()
    let slotCount = Int(try reader.u8())
    try reader.zeros(3)
    guard (1...Layout.maximumKeySlots).contains(slotCount) else {
      throw reader.failure("has \(slotCount) key slots")
    }
    slots = []
    let slotsEnd = length - Layout.headerSuffixLength
    for _ in 0..<slotCount {
      let slot = try KeySlot(parsing: bytes, from: reader.position, to: slotsEnd)
      _ = try reader.range(slot.length)
      if slot.isKnown, slots.contains(where: { $0.isKnown && $0.id == slot.id }) {
        throw reader.failure("has two key slots of one id")
      }
      slots.append(slot)
    }
    guard reader.position == slotsEnd else { throw reader.failure("has key slots of a wrong length") }
    masterCommitment = try reader.array(32)
    mac = try reader.array(32)
    try reader.zeros(bytes.count - length)
  }

  /// All that the MAC covers. The MAC itself and the padding come after it.
  package var authenticatedBytes: [UInt8] {
    let length =
      Layout.headerPrefixLength + Layout.headerSuffixLength + slots.reduce(0) { $0 + $1.length }
    var bytes = Layout.magic
    bytes.append(little: Layout.majorVersion)
    bytes.append(little: minorVersion)
    bytes.append(little: 0 as UInt32)
    bytes.append(little: readOnlyCompatible)
    bytes.append(little: compatible)
    bytes.append(little: UInt32(length))
    vaultID.append(to: &bytes)
    fileID.append(to: &bytes)
    bytes.append(UInt8(slots.count))
    bytes.append(contentsOf: [0, 0, 0])
    for slot in slots { bytes.append(contentsOf: slot.bytes) }
    bytes.append(contentsOf: masterCommitment)
    return bytes
  }

  /// The header as it is written: with its MAC, and padded.
  package var bytes: [UInt8] {
    var bytes = authenticatedBytes + mac
    bytes.append(contentsOf: repeatElement(0, count: Self.paddedLength(bytes.count) - bytes.count))
    return bytes
  }

  /// What a header of `length` bytes takes in the file.
  package static func paddedLength(_ length: Int) -> Int {
    (length + Layout.pageSize - 1) / Layout.pageSize * Layout.pageSize
  }
}
