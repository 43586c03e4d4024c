package import CofferVaultFormat
package import CofferCore

/// The master key of an open vault and all that is derived from it, in guarded memory. Thread-safe.
package final class DerivedKeys: Sendable {
  package let master: SecretBytes
  private let headerMAC: SecretBytes
  private let commits: SecretBytes
  private let metadata: SecretBytes
  private let values: SecretBytes
  private let base: SecretBytes
  private let lookup: SecretBytes
  private let watermark: SecretBytes

  package init(master: consuming SecretBytes) {
    headerMAC = Sodium.subkey(1, of: master)
    commits = Sodium.subkey(2, of: master)
    metadata = Sodium.subkey(3, of: master)
    values = Sodium.subkey(4, of: master)
    base = Sodium.subkey(5, of: master)
    lookup = Sodium.subkey(6, of: master)
    watermark = Sodium.subkey(7, of: master)
    self.master = master
  }

  /// A new random master key.
  package convenience init(randomness: any Randomness) {
    self.init(master: SecretBytes(count: 32) { randomness.fill($0) })
  }

  // MARK: Header

  private static let masterContext = Array("coffer-master-key".utf8)

  /// What ties a header to this master key, and to no other that the same seals would open under.
  private func masterCommitment(vaultID: Bytes16) -> [UInt8] {
    var message = Self.masterContext
    vaultID.append(to: &message)
    return Sodium.keyedHash(message, key: master, count: 32)
  }

  /// Whether the header was made for this master key.
  package func isCommitted(to header: Header) -> Bool {
    Sodium.isEqual(masterCommitment(vaultID: header.vaultID), header.masterCommitment)
  }

  /// Throws `.tampered` unless the header is authentic as a whole.
  package func authenticate(_ header: Header) throws(SecretError) {
    guard isCommitted(to: header),
      Sodium.isEqual(
        Sodium.keyedHash(header.authenticatedBytes, key: headerMAC, count: 32),
        header.mac
      )
    else { throw .tampered("the header is not authentic") }
  }

  /// Fills in commitment and MAC.
  package func seal(_ header: inout Header) {
    header.masterCommitment = masterCommitment(vaultID: header.vaultID)
    header.mac = Sodium.keyedHash(header.authenticatedBytes, key: headerMAC, count: 32)
  }

  // MARK: Commit slots

  private static func commitData(slot: Int, headerHash: [UInt8]) -> [UInt8] {
    Array("coffer-commit".utf8) + [UInt8(slot)] + headerHash
  }

  /// A commit slot, ready to be written: one page.
  package func seal(
    _ state: CommitState,
    slot: Int,
    headerHash: [UInt8],
    randomness: any Randomness
  ) -> [UInt8] {
    Sodium.seal(
      state.bytes.span,
      associatedData: Self.commitData(slot: slot, headerHash: headerHash),
      key: commits,
      randomness: randomness)
  }

  /// The plaintext of a commit slot, or `nil` where the slot is invalid.
  package func openCommit(_ page: Span<UInt8>, slot: Int, headerHash: [UInt8]) -> [UInt8]? {
    Sodium.open(page, associatedData: Self.commitData(slot: slot, headerHash: headerHash), key: commits)
  }

  // MARK: Frames and values

  /// What a frame's metadata is sealed with: its file, its place, its lengths and the frame before it.
  private static func frameData(
    file: Bytes16,
    offset: Int,
    header: FrameHeader,
    previousTag: Bytes16
  ) -> [UInt8] {
    var data: [UInt8] = []
    data.reserveCapacity(64)
    file.append(to: &data)
    data.append(little: UInt64(offset))
    data += header.bytes
    previousTag.append(to: &data)
    return data
  }

  /// `nonce ‖ ciphertext ‖ tag` of a frame's metadata, which is not yet padded.
  package func sealMetadata(
    _ metadata: [UInt8],
    file: Bytes16,
    offset: Int,
    header: FrameHeader,
    previousTag: Bytes16,
    randomness: any Randomness
  ) -> [UInt8] {
    var padded = metadata
    Sodium.pad(&padded)
    let data = Self.frameData(file: file, offset: offset, header: header, previousTag: previousTag)
    return Sodium.seal(
      padded.span,
      associatedData: data,
      key: self.metadata,
      randomness: randomness)
  }

  /// A frame's metadata, without padding. Throws `.tampered`.
  package func openMetadata(
    _ sealed: Span<UInt8>,
    file: Bytes16,
    offset: Int,
    header: FrameHeader,
    previousTag: Bytes16
  ) throws(SecretError) -> [UInt8] {
    let data = Self.frameData(file: file, offset: offset, header: header, previousTag: previousTag)
    guard var metadata = Sodium.open(sealed, associatedData: data, key: self.metadata),
      let count = metadata.withUnsafeBytes({ Sodium.unpaddedCount($0) })
    else { throw .tampered("a frame is not authentic") }
    metadata.removeLast(metadata.count - count)
    return metadata
  }

  /// What a value is sealed with: its vault, its name and the change that stored it; not its place.
  private static func valueData(vault: Bytes16, id: Bytes16, sequence: Int) -> [UInt8] {
    var data: [UInt8] = []
    data.reserveCapacity(40)
    vault.append(to: &data)
    id.append(to: &data)
    data.append(little: UInt64(sequence))
    return data
  }

  /// A value, padded and sealed.
  package func sealValue(
    _ value: borrowing SecretBytes,
    vault: Bytes16,
    id: Bytes16,
    sequence: Int,
    randomness: any Randomness
  ) -> [UInt8] {
    // Padded in guarded memory: the value is never elsewhere in the clear.
    let padded = SecretBytes(count: Layout.padded(value.count)) { padded in
      value.withBytes { $0.withUnsafeBytes { padded.copyMemory(from: $0) } }
      padded[value.count] = 0x80
    }
    return padded.withBytes {
      Sodium.seal(
        $0,
        associatedData: Self.valueData(vault: vault, id: id, sequence: sequence),
        key: values,
        randomness: randomness)
    }
  }

  /// The value in a seal that must end in `tag`. Throws `.tampered`.
  package func openValue(
    _ sealed: [UInt8],
    vault: Bytes16,
    record: ItemRecord
  ) throws(SecretError) -> SecretBytes {
    let data = Self.valueData(vault: vault, id: record.id, sequence: record.sequence)
    guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == record.valueTag else {
      throw .tampered("a value is not the one its record names")
    }
    var isAuthentic = false
    let padded = SecretBytes(count: sealed.count - Layout.sealOverhead) {
      isAuthentic = Sodium.open(sealed.span, associatedData: data, key: values, into: $0)
    }
    guard isAuthentic, let count = padded.withBytes({ $0.withUnsafeBytes { Sodium.unpaddedCount($0) } }),
      count <= Layout.maximumValueLength
    else { throw .tampered("a value is not authentic") }
    return padded.withBytes { SecretBytes(copying: $0.extracting(first: count)) }
  }

  // MARK: Base

  private static func blockData(file: Bytes16, offset: Int, index: Int) -> [UInt8] {
    var data = Array("coffer-block".utf8)
    file.append(to: &data)
    data.append(little: UInt64(offset))
    data.append(little: UInt32(index))
    return data
  }

  private static func rootData(file: Bytes16, offset: Int) -> [UInt8] {
    var data = Array("coffer-root".utf8)
    file.append(to: &data)
    data.append(little: UInt64(offset))
    return data
  }

  package func sealBlock(
    _ block: [UInt8],
    file: Bytes16,
    offset: Int,
    index: Int,
    randomness: any Randomness
  ) -> [UInt8] {
    Sodium.seal(
      block.span,
      associatedData: Self.blockData(file: file, offset: offset, index: index),
      key: base,
      randomness: randomness)
  }

  /// The items of a block whose seal must end in `tag`. Throws `.tampered`.
  package func openBlock(
    _ sealed: [UInt8],
    tag: Bytes16,
    file: Bytes16,
    offset: Int,
    index: Int
  ) throws(SecretError) -> [UInt8] {
    guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == tag,
      let block = Sodium.open(
        sealed.span,
        associatedData: Self.blockData(file: file, offset: offset, index: index),
        key: base
      )
    else { throw .tampered("a block is not authentic") }
    return block
  }

  package func sealRoot(
    _ root: [UInt8],
    file: Bytes16,
    offset: Int,
    randomness: any Randomness
  ) -> [UInt8] {
    Sodium.seal(
      root.span,
      associatedData: Self.rootData(file: file, offset: offset),
      key: base,
      randomness: randomness)
  }

  /// The root whose seal must end in `tag`. Throws `.tampered`.
  package func openRoot(
    _ sealed: [UInt8],
    tag: Bytes16,
    file: Bytes16,
    offset: Int
  ) throws(SecretError) -> [UInt8] {
    guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == tag,
      let root = Sodium.open(
        sealed.span,
        associatedData: Self.rootData(file: file, offset: offset),
        key: base
      )
    else { throw .tampered("the root is not authentic") }
    return root
  }

  // MARK: Watermark

  func watermarkMAC(_ checkpoint: Checkpoint, vaultID: Bytes16) -> [UInt8] {
    Sodium.keyedHash(WatermarkFormat.message(checkpoint, vaultID: vaultID), key: watermark, count: 32)
  }

  // MARK: Lookup ids

  /// What stands in the file for a name.
  package func lookupID(_ identifier: SecretIdentifier) -> Bytes16 {
    var message: [UInt8] = []
    message.reserveCapacity(64)
    message.append(little: UInt32(identifier.service.utf8.count))
    message += identifier.service.utf8
    message.append(little: UInt32(identifier.account.utf8.count))
    message += identifier.account.utf8
    return Sodium.keyedHash(message, key: lookup, count: 16).withUnsafeBytes { Bytes16($0) }
  }
}
