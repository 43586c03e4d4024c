package import CofferVaultFormat
package import CofferCore

/// Goes through the frames of a tail in order, and authenticates each against the one before.
package struct TailReader {
  package struct Frame {
    package enum Content {
      case put(BlockEntry)
      case remove(RemoveRecord)
    }
    package let content: Content
    /// Bytes of the frame that are not its value.
    package let cost: Int
  }

  private let vault: VaultFile
  private let keys: DerivedKeys
  private var window: BufferedFileReader
  private var offset: Int
  private let end: Int
  /// The tag and the sequence of the last frame given out.
  package private(set) var previousTag: Bytes16
  package private(set) var sequence: Int

  package init(
    _ vault: VaultFile,
    keys: DerivedKeys,
    from offset: Int,
    to end: Int,
    previousTag: Bytes16,
    sequence: Int
  ) {
    self.vault = vault
    self.keys = keys
    self.offset = offset
    self.end = end
    self.previousTag = previousTag
    self.sequence = sequence
    window = BufferedFileReader(vault.file, path: vault.path, end: end)
  }

  /// The next frame, or `nil` at the end. Throws `.tampered`.
  package mutating func next() throws(SecretError) -> Frame? {
    guard offset < end else { return nil }
    let start = try window.range(at: offset, count: Layout.frameHeaderLength).lowerBound
    let header = try FrameHeader(parsing: window.bytes, from: start)
    guard header.sequence == sequence + 1, header.frameLength <= end - offset else {
      throw .tampered("a frame is out of its place")
    }
    let range = try window.range(
      at: offset + Layout.frameHeaderLength,
      count: header.sealedMetadataLength
    )
    let metadata = try keys.openMetadata(
      window.bytes.span.extracting(range),
      file: vault.header.fileID,
      offset: offset,
      header: header,
      previousTag: previousTag
    )
    let tag = window.bytes.withUnsafeBytes { Bytes16($0, at: range.upperBound - 16) }
    var reader = ByteReader(metadata, part: "a frame")
    let content: Frame.Content
    switch header.kind {
    case .put:
      let record = try ItemRecord(parsing: &reader)
      try reader.expectEnd()
      guard record.sequence == header.sequence else { throw reader.failure("has two sequences") }
      let valueOffset = offset + Layout.frameHeaderLength + header.sealedMetadataLength
      content = .put(
        BlockEntry(record: record, valueOffset: valueOffset, valueLength: header.sealedValueLength)
      )
    case .remove:
      content = .remove(try RemoveRecord(parsing: &reader))
    }
    offset += header.frameLength
    (previousTag, sequence) = (tag, header.sequence)
    return Frame(content: content, cost: header.frameLength - header.sealedValueLength)
  }
}
