package import CofferCore

/// The plaintext of a commit slot: which bytes of the file count.
package struct CommitState: Hashable, Sendable {
  /// The number of changes so far. It never decreases.
  package var sequence: Int
  /// The end of the tail: the offset of the next frame.
  package var end: Int
  /// The tag of the last frame, or of the root if there is no frame.
  package var tailTag: Bytes16
  /// The end of the base and the start of the tail.
  package var baseEnd: Int
  package var rootOffset: Int
  /// The length of the sealed root.
  package var rootLength: Int
  package var rootTag: Bytes16
  /// The number of secrets: names whose newest record is a put.
  package var secretCount: Int
  /// An estimate of the bytes that a rewrite would save.
  package var deadBytes: Int

  /// The length of the plaintext. Its seal fills a page.
  package static let length = Layout.pageSize - Layout.sealOverhead
  private static let fieldsLength = 88

  /// The state of a file that has just been written: a base whose root starts at `rootOffset`, and no tail.
  package init(sequence: Int, rootOffset: Int, rootLength: Int, rootTag: Bytes16, secretCount: Int) {
    self.sequence = sequence
    self.rootOffset = rootOffset
    self.rootLength = rootLength
    self.rootTag = rootTag
    self.secretCount = secretCount
    baseEnd = rootOffset + rootLength
    (end, tailTag, deadBytes) = (baseEnd, rootTag, 0)
  }

  /// Parses and checks the state of a file whose padded header has `headerLength` bytes. Throws `.tampered`.
  package init(parsing bytes: [UInt8], headerLength: Int) throws(SecretError) {
    var reader = ByteReader(bytes, part: "a commit slot")
    sequence = try reader.number()
    end = try reader.number()
    tailTag = try reader.bytes16()
    baseEnd = try reader.number()
    rootOffset = try reader.number()
    rootLength = Int(try reader.u32())
    try reader.zeros(4)
    rootTag = try reader.bytes16()
    secretCount = try reader.number()
    deadBytes = try reader.number()
    try reader.zeros(Self.length - Self.fieldsLength)
    try reader.expectEnd()
    let (rootEnd, overflow) = rootOffset.addingReportingOverflow(rootLength)
    guard rootOffset >= headerLength + 2 * Layout.pageSize, !overflow, rootEnd == baseEnd,
      baseEnd <= end, rootLength >= Layout.rootPrefixLength + 2 + Layout.sealOverhead,
      rootLength <= Layout.maximumRootLength,
      baseEnd < end || tailTag == rootTag, secretCount <= end
    else { throw reader.failure("contradicts itself") }
  }

  package var bytes: [UInt8] {
    encode(
      sequence, end, tailTag, baseEnd, rootOffset, UInt32(rootLength), Zeros(4), rootTag, secretCount,
      deadBytes, Zeros(Self.length - Self.fieldsLength))
  }

  package var checkpoint: Checkpoint { Checkpoint(sequence: sequence, tailTag: tailTag) }
}
