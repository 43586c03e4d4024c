package import CofferCore

/// The root of the base, which lists the blocks.
package struct BaseIndex: Sendable {
  package struct Block: Sendable {
    package var firstID: Bytes16
    package var offset: Int
    /// The length of the sealed block.
    package var length: Int
    package var itemCount: Int
    package var tag: Bytes16

    package init(firstID: Bytes16, offset: Int, length: Int, itemCount: Int, tag: Bytes16) {
      self.firstID = firstID
      self.offset = offset
      self.length = length
      self.itemCount = itemCount
      self.tag = tag
    }

    package var end: Int { offset + length }
  }

  /// The sequence of the rewrite that wrote the base.
  package var sequence: Int
  package var itemCount = 0
  package var blocks: [Block] = []

  package init(sequence: Int) { self.sequence = sequence }

  /// Parses the root of a base that fills the file from `start` to `rootOffset`.
  package init(parsing bytes: [UInt8], start: Int, rootOffset: Int) throws(SecretError) {
    var reader = ByteReader(bytes, part: "the root")
    sequence = try reader.number()
    itemCount = try reader.number()
    let blockCount = Int(try reader.u32())
    try reader.zeros(4)
    guard bytes.count - reader.position == blockCount * Layout.rootEntryLength else {
      throw reader.failure("has a wrong length")
    }
    blocks.reserveCapacity(blockCount)
    var end = start
    var items = 0
    for _ in 0..<blockCount {
      let block = Block(
        firstID: try reader.bytes16(), offset: try reader.number(), length: Int(try reader.u32()),
        itemCount: Int(try reader.u32()), tag: try reader.bytes16())
      // The number of items is checked against the length before memory is reserved for them.
      guard block.itemCount > 0, block.itemCount <= block.length / BlockEntry.minimumLength,
        block.length > Layout.sealOverhead,
        block.length <= Layout.maximumBlockLength + Layout.sealOverhead,
        block.offset >= end, block.offset <= rootOffset, block.length <= rootOffset - block.offset,
        blocks.last.map({ $0.firstID < block.firstID }) ?? true
      else { throw reader.failure("has blocks that contradict each other") }
      end = block.end
      items += block.itemCount
      blocks.append(block)
    }
    guard items == itemCount, end == rootOffset else { throw reader.failure("does not add up") }
  }

  package var bytes: [UInt8] {
    blocks.reduce(into: encode(sequence, itemCount, UInt32(blocks.count), Zeros(4))) { bytes, block in
      bytes += encode(
        block.firstID, block.offset, UInt32(block.length), UInt32(block.itemCount), block.tag)
    }
  }

  /// Returns the index of the only block that can hold `id`, or `nil` if `id` comes before the first block.
  package func block(for id: Bytes16) -> Int? {
    let next = blocks.partitioningIndex { $0.firstID > id }
    return next == 0 ? nil : next - 1
  }
}

extension Array {
  /// Returns the index of the first element that satisfies `predicate`, by binary search. No element that
  /// satisfies it may come before one that does not.
  package func partitioningIndex(where predicate: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
