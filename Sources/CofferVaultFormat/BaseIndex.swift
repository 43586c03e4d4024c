package import CofferCore

/// The root of the base: the settings of the vault, and the list of the blocks.
package struct BaseIndex: Sendable {
  package struct Block: Sendable {
    /// The position of the block's first item.
    package var first: VersionPosition
    package var offset: Int
    /// The length of the sealed block.
    package var length: Int
    package var itemCount: Int
    package var tag: Bytes16

    package init(first: VersionPosition, offset: Int, length: Int, itemCount: Int, tag: Bytes16) {
      self.first = first
      self.offset = offset
      self.length = length
      self.itemCount = itemCount
      self.tag = tag
    }

    package var end: Int { offset + length }
  }

  /// What a rewrite carries over from one file to the next.
  package struct Settings: Sendable {
    package var history: HistoryLimit
    /// The sealed keys by which former master keys are recognised, or `nil` if the vault has had only one.
    package var lineage: [UInt8]?
    /// Fields that this version does not know.
    fileprivate var others: [TaggedField] = []

    package init(history: HistoryLimit, lineage: [UInt8]? = nil) {
      (self.history, self.lineage) = (history, lineage)
    }
  }

  private enum FieldType {
    static let history: UInt16 = 1
    static let lineage: UInt16 = 2
  }

  /// The sequence of the rewrite that wrote the base.
  package var sequence: Int
  /// The number of items in all blocks.
  package var itemCount = 0
  package var settings: Settings
  package var blocks: [Block] = []

  package init(sequence: Int, settings: Settings) { (self.sequence, self.settings) = (sequence, settings) }

  /// Parses the root of a base that fills the file from `start` to `rootOffset`. Throws `.tampered`, and
  /// `.unsupportedVersion` for an unknown critical field.
  package init(parsing bytes: [UInt8], start: Int, rootOffset: Int) throws(SecretError) {
    var reader = ByteReader(bytes, part: "the root")
    sequence = try reader.number()
    itemCount = try reader.number()
    let blockCount = Int(try reader.u32())
    try reader.zeros(4)
    settings = try Self.settings(&reader)
    guard bytes.count - reader.position == blockCount * Layout.rootEntryLength else {
      throw reader.failure("has a wrong length")
    }
    blocks.reserveCapacity(blockCount)
    var end = start
    var items = 0
    for _ in 0..<blockCount {
      let block = Block(
        first: VersionPosition(id: try reader.bytes16(), sequence: try reader.number()),
        offset: try reader.number(), length: Int(try reader.u32()), itemCount: Int(try reader.u32()),
        tag: try reader.bytes16())
      // The number of items is checked against the length before memory is reserved for them.
      guard block.itemCount > 0, block.itemCount <= block.length / BlockEntry.minimumLength,
        block.length > Layout.sealOverhead,
        block.length <= Layout.maximumBlockLength + Layout.sealOverhead,
        block.offset >= end, block.offset <= rootOffset, block.length <= rootOffset - block.offset,
        blocks.last.map({ $0.first < block.first }) ?? true
      else { throw reader.failure("has blocks that contradict each other") }
      end = block.end
      items += block.itemCount
      blocks.append(block)
    }
    guard items == itemCount, end == rootOffset else { throw reader.failure("does not add up") }
  }

  private static func settings(_ reader: inout ByteReader) throws(SecretError) -> Settings {
    var settings = Settings(history: .none)
    let known = FieldType.history...FieldType.lineage
    settings.others = try reader.taggedFields(known) { type, field throws(SecretError) in
      if type == FieldType.history {
        let (versions, days) = (Int(try field.u16()), Int(try field.u16()))
        guard let history = HistoryLimit(versions: versions, days: days) else {
          throw field.failure("has a history limit out of bounds")
        }
        settings.history = history
      } else {
        let lineage = Array(field.bytes[try field.rest()])
        let keys = lineage.count - Layout.sealOverhead
        guard keys > 0, keys % 32 == 0, keys / 32 <= Layout.maximumLineage else {
          throw field.failure("has a lineage of a wrong length")
        }
        settings.lineage = lineage
      }
    }
    return settings
  }

  package var bytes: [UInt8] {
    var fields = [
      TaggedField(FieldType.history, encode(UInt16(settings.history.versions), UInt16(settings.history.days)))
    ]
    if let lineage = settings.lineage { fields.append(TaggedField(FieldType.lineage, lineage)) }
    let prefix = encode(
      sequence, itemCount, UInt32(blocks.count), Zeros(4), TaggedFields(fields + settings.others))
    return blocks.reduce(into: prefix) { bytes, block in
      bytes += encode(
        block.first.id, block.first.sequence, block.offset, UInt32(block.length), UInt32(block.itemCount),
        block.tag)
    }
  }

  /// Returns the index of the only block that can hold the newest version of `id`, or `nil` if `id` comes
  /// before the first block.
  package func block(for id: Bytes16) -> Int? {
    let next = blocks.partitioningIndex { $0.first.id > id }
    return next == 0 ? nil : next - 1
  }
}

extension Array {
  /// Returns the index of the first element that satisfies `predicate`, or the number of elements, by binary search. The
  /// elements that satisfy `predicate` must be at the end.
  package func partitioningIndex(where predicate: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
