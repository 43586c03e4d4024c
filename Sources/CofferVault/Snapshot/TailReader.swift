package import CofferCore
package import CofferVaultFormat

/// Reads the frames of a tail in order, and authenticates each against the one before it.
package struct TailReader {
  package struct Frame {
    package let entry: BlockEntry
    /// The tag of the frame.
    package let tag: Bytes16
    /// The bytes of the frame without its value.
    package let replayLength: Int
  }

  private let vault: VaultFile
  private let keys: DerivedKeys
  private var reader: BufferedFileReader
  private var offset: Int
  private let end: Int
  /// The tag and the sequence of the last frame that was read.
  package private(set) var previousTag: Bytes16
  package private(set) var sequence: Int

  /// Reads the frames from `offset` to `end`. `previousTag` and `sequence` are those of the frame before, or
  /// of the root.
  package init(
    _ vault: VaultFile, keys: DerivedKeys, from offset: Int, to end: Int, previousTag: Bytes16,
    sequence: Int
  ) {
    self.vault = vault
    self.keys = keys
    self.offset = offset
    self.end = end
    self.previousTag = previousTag
    self.sequence = sequence
    reader = BufferedFileReader(vault.storage, end: end)
  }

  /// Returns the next frame, or `nil` at the end. Throws `.tampered`.
  package mutating func next() throws(SecretError) -> Frame? {
    guard offset < end else { return nil }
    let prefix = try reader.array(at: offset, count: Layout.framePrefixLength)
    let nonce = try reader.array(at: offset + Layout.framePrefixLength, count: Layout.nonceLength)
    let length = try FrameMetadata.length(in: prefix, mask: keys.frameMask(nonce: nonce))
    let range = try reader.range(at: offset + Layout.framePrefixLength, count: length + Layout.sealOverhead)
    let metadata = try FrameMetadata(
      parsing: keys.openPadded(
        reader.bytes.span.extracting(range),
        .metadata(file: vault.header.fileID, offset: offset, length: length, previousTag: previousTag)))
    let tag = reader.bytes.withUnsafeBytes { Bytes16($0, at: range.upperBound - 16) }
    let valueOffset = offset + Layout.framePrefixLength + range.count
    guard metadata.record.sequence == sequence + 1, metadata.valueLength <= end - valueOffset else {
      throw .tampered("a frame is out of its place")
    }
    let frame = Frame(
      entry: BlockEntry(
        record: metadata.record, valueOffset: valueOffset, valueLength: metadata.valueLength),
      tag: tag, replayLength: valueOffset - offset)
    offset = valueOffset + metadata.valueLength
    (previousTag, sequence) = (tag, metadata.record.sequence)
    return frame
  }
}
