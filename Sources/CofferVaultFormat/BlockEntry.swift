package import CofferCore

/// One item of a block: its record and where its sealed value is.
package struct BlockEntry: Sendable {
  package let record: ItemRecord
  package let valueOffset: Int
  package let valueLength: Int

  package init(record: ItemRecord, valueOffset: Int, valueLength: Int) {
    self.record = record
    self.valueOffset = valueOffset
    self.valueLength = valueLength
  }

  /// Parses the items of `block`. Their values fill the file from `start` to the block.
  package static func parse(
    _ bytes: [UInt8],
    block: BaseIndex.Block,
    start: Int,
    maximumSequence: Int
  ) throws(SecretError) -> [BlockEntry] {
    var reader = ByteReader(bytes, part: "a block")
    var items: [BlockEntry] = []
    items.reserveCapacity(block.itemCount)
    var offset = start
    while !reader.isAtEnd {
      let record = try ItemRecord(parsing: &reader)
      let item = BlockEntry(
        record: record,
        valueOffset: try reader.number(),
        valueLength: Int(try reader.u32())
      )
      let padded = item.valueLength - Layout.sealOverhead
      guard items.last.map({ $0.record.id < record.id }) ?? (record.id == block.firstID),
        record.sequence <= maximumSequence, item.valueOffset == offset,
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

  /// Appends the item as it stands in a block.
  package static func append(
    record: [UInt8],
    valueOffset: Int,
    valueLength: Int,
    to bytes: inout [UInt8]
  ) {
    bytes += record
    bytes.append(little: UInt64(valueOffset))
    bytes.append(little: UInt32(valueLength))
  }

  /// The least an item takes in a block, in bytes: a record with names of one byte, and the overhead.
  package static let minimumLength = 64 + overhead

  /// Bytes an item takes beside its record.
  package static let overhead = 12
}
