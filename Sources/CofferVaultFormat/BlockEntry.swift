package import CofferCore

/// An item of a block: a record, and the place of its sealed value.
package struct BlockEntry: Sendable {
  package let record: ItemRecord
  package let valueOffset: Int
  package let valueLength: Int

  package init(record: ItemRecord, valueOffset: Int, valueLength: Int) {
    self.record = record
    self.valueOffset = valueOffset
    self.valueLength = valueLength
  }

  /// The bytes that a block has for an item in addition to its record.
  package static let overhead = 12
  /// The shortest item of a block: a record whose names have one byte each, and the overhead.
  package static let minimumLength = 64 + overhead

  /// Parses the items of `block`. Their values fill the file from `start` to the block.
  package static func parse(
    _ bytes: [UInt8], block: BaseIndex.Block, start: Int, maximumSequence: Int
  ) throws(SecretError) -> [BlockEntry] {
    var reader = ByteReader(bytes, part: "a block")
    var items: [BlockEntry] = []
    items.reserveCapacity(block.itemCount)
    var offset = start
    while !reader.isAtEnd {
      let item = BlockEntry(
        record: try ItemRecord(parsing: &reader), valueOffset: try reader.number(),
        valueLength: Int(try reader.u32()))
      let padded = item.valueLength - Layout.sealOverhead
      guard items.last.map({ $0.record.id < item.record.id }) ?? (item.record.id == block.firstID),
        item.record.sequence <= maximumSequence, item.valueOffset == offset,
        padded > 0, padded % Layout.paddingUnit == 0,
        padded <= Layout.padded(Layout.maximumValueLength), item.valueLength <= block.offset - offset
      else { throw reader.failure("has items that contradict each other") }
      offset += item.valueLength
      items.append(item)
    }
    guard items.count == block.itemCount, offset == block.offset else {
      throw reader.failure("does not add up")
    }
    return items
  }

  /// Appends an item to the plaintext of a block.
  package static func append(record: [UInt8], valueOffset: Int, valueLength: Int, to bytes: inout [UInt8]) {
    bytes += record
    bytes += encode(valueOffset, UInt32(valueLength))
  }
}
