package import CofferCore

/// The root of the base: where its blocks are.
package struct BaseIndex: Sendable {
  package struct Block: Sendable {
    package var firstID: Bytes16
    package var offset: Int
    /// Length of the sealed block, in bytes.
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
  }

  /// The sequence of the rewrite that made the base.
  package var sequence: Int
  package var itemCount: Int
  package var blocks: [Block]

  package init(sequence: Int, itemCount: Int, blocks: [Block]) {
    self.sequence = sequence
    self.itemCount = itemCount
    self.blocks = blocks
  }

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
    blocks = []
    blocks.reserveCapacity(blockCount)
    var end = start
    var items = 0
    for _ in 0..<blockCount {
      let block = Block(
        firstID: try reader.bytes16(),
        offset: try reader.number(),
        length: Int(try reader.u32()),
        itemCount: Int(try reader.u32()),
        tag: try reader.bytes16()
      )
      // The number of items is bounded by the length before anyone makes room for them.
      guard block.itemCount > 0, block.itemCount <= block.length / BlockEntry.minimumLength,
        block.length > Layout.sealOverhead,
        block.length <= Layout.maximumBlockLength + Layout.sealOverhead,
        block.offset >= end, block.offset <= rootOffset, block.length <= rootOffset - block.offset,
        blocks.last.map({ $0.firstID < block.firstID }) ?? true
      else { throw reader.failure("has blocks that contradict each other") }
      end = block.offset + block.length
      items += block.itemCount
      blocks.append(block)
    }
    guard items == itemCount, end == rootOffset else { throw reader.failure("does not add up") }
  }

  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Layout.rootPrefixLength + blocks.count * Layout.rootEntryLength)
    bytes.append(little: UInt64(sequence))
    bytes.append(little: UInt64(itemCount))
    bytes.append(little: UInt32(blocks.count))
    bytes.append(little: 0 as UInt32)
    for block in blocks {
      block.firstID.append(to: &bytes)
      bytes.append(little: UInt64(block.offset))
      bytes.append(little: UInt32(block.length))
      bytes.append(little: UInt32(block.itemCount))
      block.tag.append(to: &bytes)
    }
    return bytes
  }

  /// Which block holds `id`, if any does.
  package func block(for id: Bytes16) -> Int? {
    var low = 0
    var high = blocks.count
    while low < high {
      let middle = (low + high) / 2
      if blocks[middle].firstID <= id { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : low - 1
  }
}
