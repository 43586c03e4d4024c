package import CofferCore
package import CofferVaultFormat

/// The frames of a vault, each authenticated against the one before it.
///
/// The plaintexts of all frames lie in one array, and a record is decoded only on request: a process that looks for one
/// secret does little more with the frames of others than authenticate them.
package struct Tail: Sendable {
  package struct Frame: Sendable {
    package let head: Record.Head
    /// The tag of the frame.
    package let tag: Bytes16
    /// The bytes of the frame without its value.
    let replayLength: Int
    let valueOffset: Int
    /// The range of the frame's plaintext, without its padding, in the array of all plaintexts.
    fileprivate let range: Range<Int>
  }

  package private(set) var frames: [Frame] = []
  private var plaintexts: [UInt8] = []
  /// The bytes that a reader has to read to find one secret: everything but values.
  package private(set) var replayLength = 0

  package init() {}

  /// Decodes the record of a frame. Throws `.tampered`, and `.unsupportedVersion` for an unknown critical field.
  package func entry(_ frame: Frame) throws(SecretError) -> BlockEntry {
    BlockEntry(record: try Record(frame: Array(plaintexts[frame.range])), valueOffset: frame.valueOffset)
  }

  /// The records of a secret in ascending order. Throws like ``entry(_:)``.
  package func entries(_ id: Bytes16) throws(SecretError) -> [BlockEntry] {
    try frames.filter { $0.head.id == id }.map(entry)
  }

  /// The newest record of a secret, or `nil` if the tail has none. Throws like ``entry(_:)``.
  package func newest(_ id: Bytes16) throws(SecretError) -> BlockEntry? {
    try frames.last { $0.head.id == id }.map(entry)
  }

  /// Adds a frame that this process has written. `plaintext` is without padding.
  mutating func add(_ plaintext: [UInt8], tag: Bytes16, replayLength: Int, valueOffset: Int) throws(SecretError) {
    let head = try Record.Head(frame: plaintext.span)
    let start = plaintexts.count
    plaintexts += plaintext
    add(
      Frame(
        head: head, tag: tag, replayLength: replayLength, valueOffset: valueOffset,
        range: start..<plaintexts.count))
  }

  private mutating func add(_ frame: Frame) {
    frames.append(frame)
    replayLength += frame.replayLength
  }

  /// Reads the frames of `vault` from `offset` to the end of `state`. `previous` is the state before the frame at
  /// `offset`. Throws `.tampered`.
  mutating func read(
    _ vault: VaultFile, _ keys: DerivedKeys, to state: CommitState, from offset: Int,
    after previous: Checkpoint
  ) throws(SecretError) {
    var reader = BufferedFileReader(vault.storage, end: state.end)
    var (offset, previous) = (offset, previous)
    var padded: [UInt8] = []
    while offset < state.end {
      let prefixLength = Layout.framePrefixLength
      let prefix = try reader.range(at: offset, count: prefixLength + Layout.nonceLength)
      let length = Int(
        reader.bytes.withUnsafeBytes { bytes in
          let nonce = UnsafeRawBufferPointer(rebasing: bytes[(prefix.lowerBound + prefixLength)..<prefix.upperBound])
          return bytes.integer(at: prefix.lowerBound) ^ keys.frameMask(nonce: nonce)
        })
      guard replayLength + prefixLength + length + Layout.sealOverhead <= Layout.maximumReplayLength else {
        throw .tampered("the tail is too long")
      }
      let range = try reader.range(at: offset + prefixLength, count: length + Layout.sealOverhead)
      let start = plaintexts.count
      let context = SealContext.metadata(
        file: vault.header.fileID, offset: offset, length: length, previousTag: previous.tailTag)
      if padded.count < length { padded = [UInt8](repeating: 0, count: length) }
      let count = padded.withUnsafeMutableBytes { bytes in
        keys.openPadded(
          reader.bytes.span.extracting(range), context,
          into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<length]))
      }
      guard let count else { throw .tampered("a frame is not authentic") }
      plaintexts += padded[..<count]
      let head = try Record.Head(frame: plaintexts.span.extracting(start...))
      let valueOffset = offset + prefixLength + range.count
      guard head.sequence == previous.sequence + 1, head.valueLength <= state.end - valueOffset else {
        throw .tampered("a frame is out of its place")
      }
      let tag = reader.bytes.withUnsafeBytes { Bytes16($0, at: range.upperBound - 16) }
      add(
        Frame(
          head: head, tag: tag, replayLength: valueOffset - offset, valueOffset: valueOffset,
          range: start..<start + count))
      offset = valueOffset + head.valueLength
      previous = Checkpoint(sequence: head.sequence, tailTag: tag)
    }
    guard previous == state.checkpoint else { throw .tampered("the tail is not the one that the commit slot names") }
  }
}
