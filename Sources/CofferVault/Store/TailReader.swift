package import CofferCore
package import CofferVaultFormat

/// Reads the frames of a tail in order, and authenticates each against the one before it.
package struct TailReader {
  package struct Frame {
    package enum Content {
      case put(BlockEntry)
      case remove(RemoveRecord)
    }
    package let content: Content
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
    let start = try reader.range(at: offset, count: Layout.frameHeaderLength).lowerBound
    let header = try FrameHeader(parsing: reader.bytes, from: start)
    guard header.sequence == sequence + 1, header.frameLength <= end - offset else {
      throw .tampered("a frame is out of its place")
    }
    let metadataOffset = offset + Layout.frameHeaderLength
    let range = try reader.range(at: metadataOffset, count: header.sealedMetadataLength)
    let metadata = try keys.openPadded(
      reader.bytes.span.extracting(range),
      .metadata(
        file: vault.header.fileID, offset: offset, header: header.bytes, previousTag: previousTag))
    let tag = reader.bytes.withUnsafeBytes { Bytes16($0, at: range.upperBound - 16) }
    var fields = ByteReader(metadata, part: "a frame")
    let content: Frame.Content
    switch header.kind {
    case .put:
      let record = try ItemRecord(parsing: &fields)
      try fields.expectEnd()
      guard record.sequence == header.sequence else { throw fields.failure("has two sequences") }
      content = .put(
        BlockEntry(
          record: record, valueOffset: offset + header.replayLength, valueLength: header.sealedValueLength))
    case .remove:
      content = .remove(try RemoveRecord(parsing: &fields))
    }
    offset += header.frameLength
    (previousTag, sequence) = (tag, header.sequence)
    return Frame(content: content, replayLength: header.replayLength)
  }
}
