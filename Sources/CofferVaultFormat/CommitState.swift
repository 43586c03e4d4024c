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
  package var rootLength: Int
  package var rootTag: Bytes16

  /// The length of the plaintext. Its seal fills a page.
  package static let length = Layout.pageSize - Layout.sealOverhead
  private static let fieldsLength = 64

  /// The state of a file that has just been written: a base that ends with its root at `baseEnd`, and no tail.
  package init(sequence: Int, baseEnd: Int, rootLength: Int, rootTag: Bytes16) {
    (self.sequence, self.baseEnd, self.rootLength, self.rootTag) = (sequence, baseEnd, rootLength, rootTag)
    (end, tailTag) = (baseEnd, rootTag)
  }

  package var rootOffset: Int { baseEnd - rootLength }

  /// Parses and checks the state of a file whose padded header has `headerLength` bytes. Throws `.tampered`.
  package init(parsing bytes: [UInt8], headerLength: Int) throws(SecretError) {
    var reader = ByteReader(bytes, part: "a commit slot")
    sequence = try reader.sequence()
    end = try reader.number()
    tailTag = try reader.bytes16()
    baseEnd = try reader.number()
    rootLength = Int(try reader.u32())
    try reader.zeros(4)
    rootTag = try reader.bytes16()
    try reader.zeros(Self.length - Self.fieldsLength)
    try reader.expectEnd()
    let rootLengths = Layout.rootPrefixLength + 4...Layout.maximumPartLength
    guard rootLengths.contains(rootLength - Layout.sealOverhead),
      baseEnd - rootLength >= headerLength + Layout.pagesLength, baseEnd <= end,
      baseEnd < end || tailTag == rootTag
    else { throw reader.failure("contradicts itself") }
  }

  /// Whether `later` can be a later state of the same file.
  package func precedes(_ later: CommitState) -> Bool {
    sequence < later.sequence && end <= later.end && baseEnd == later.baseEnd
      && rootLength == later.rootLength && rootTag == later.rootTag
  }

  package var bytes: [UInt8] {
    encode(
      sequence, end, tailTag, baseEnd, UInt32(rootLength), zeros(4), rootTag,
      zeros(Self.length - Self.fieldsLength))
  }

  package var checkpoint: Checkpoint { Checkpoint(sequence: sequence, tailTag: tailTag) }
}
