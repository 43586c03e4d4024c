package import CofferCore

/// What a commit slot says, once it is opened: which bytes of the file count.
package struct CommitState: Hashable, Sendable {
  /// Counts changes, and never goes back.
  package var sequence: Int
  /// Where the tail ends: the next frame's offset.
  package var end: Int
  /// The tag of the last frame, or of the root where there is none.
  package var tailTag: Bytes16
  /// Where the base ends and the tail begins.
  package var baseEnd: Int
  package var rootOffset: Int
  package var rootLength: Int
  package var rootTag: Bytes16
  /// How many secrets there are.
  package var itemCount: Int
  /// About how many bytes a rewrite would save.
  package var deadBytes: Int

  /// Length of the plaintext: with its seal it fills a page.
  package static let length = Layout.pageSize - Layout.sealOverhead
  private static let fieldsLength = 88

  package init(
    sequence: Int,
    end: Int,
    tailTag: Bytes16,
    baseEnd: Int,
    rootOffset: Int,
    rootLength: Int,
    rootTag: Bytes16,
    itemCount: Int,
    deadBytes: Int
  ) {
    self.sequence = sequence
    self.end = end
    self.tailTag = tailTag
    self.baseEnd = baseEnd
    self.rootOffset = rootOffset
    self.rootLength = rootLength
    self.rootTag = rootTag
    self.itemCount = itemCount
    self.deadBytes = deadBytes
  }

  /// Parses and checks a state of a file whose header takes `headerLength` bytes with its padding.
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
    itemCount = try reader.number()
    deadBytes = try reader.number()
    try reader.zeros(Self.length - Self.fieldsLength)
    try reader.expectEnd()
    let (rootEnd, overflow) = rootOffset.addingReportingOverflow(rootLength)
    guard rootOffset >= headerLength + 2 * Layout.pageSize, !overflow, rootEnd == baseEnd,
      baseEnd <= end, rootLength >= Layout.rootPrefixLength + Layout.sealOverhead,
      baseEnd < end || tailTag == rootTag
    else { throw reader.failure("contradicts itself") }
  }

  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    bytes.append(little: UInt64(sequence))
    bytes.append(little: UInt64(end))
    tailTag.append(to: &bytes)
    bytes.append(little: UInt64(baseEnd))
    bytes.append(little: UInt64(rootOffset))
    bytes.append(little: UInt32(rootLength))
    bytes.append(little: 0 as UInt32)
    rootTag.append(to: &bytes)
    bytes.append(little: UInt64(itemCount))
    bytes.append(little: UInt64(deadBytes))
    bytes.append(contentsOf: repeatElement(0, count: Self.length - Self.fieldsLength))
    return bytes
  }

  package var checkpoint: Checkpoint { Checkpoint(sequence: sequence, tailTag: tailTag) }
}
