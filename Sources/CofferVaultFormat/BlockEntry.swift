package import CofferCore
package import FoundationEssentials

/// A record, and the place of its sealed value in the file. A remove has no value.
package struct BlockEntry: Sendable {
  package let record: Record
  package let valueOffset: Int
  /// The length of the sealed value; 0 for a remove.
  package let valueLength: Int

  package init(record: Record, valueOffset: Int, valueLength: Int) {
    self.record = record
    self.valueOffset = valueOffset
    self.valueLength = valueLength
  }

  /// The approximate number of bytes that the record and the value have in the file.
  package var size: Int { record.bytes.count + valueLength }

  /// The number of bytes that a block has for a put in addition to its record.
  package static let overhead = 12
  /// The length of the shortest record: a remove whose service and account have one byte each.
  package static let minimumLength = 41

  /// Parses the entries of `block`. Their values fill the file from `start` to the block. Throws `.tampered`, and
  /// `.unsupportedVersion` for an unknown critical field.
  package static func parse(
    _ bytes: [UInt8], block: BaseIndex.Block, start: Int, maximumSequence: Int
  ) throws(SecretError) -> [BlockEntry] {
    var reader = ByteReader(bytes, part: "a block")
    var entries: [BlockEntry] = []
    entries.reserveCapacity(block.itemCount)
    var end = start
    while !reader.isAtEnd {
      let record = try Record(parsing: &reader)
      var (offset, length) = (end, 0)
      if record.kind == .put { (offset, length) = (try reader.number(), Int(try reader.u32())) }
      let position = VersionPosition(record)
      guard entries.last.map({ VersionPosition($0.record) < position }) ?? (position == block.first),
        record.sequence <= maximumSequence, offset == end,
        length == 0 ? record.kind == .remove : Layout.isSealedValueLength(length),
        length <= block.offset - end
      else { throw reader.failure("has items that contradict each other") }
      end += length
      entries.append(BlockEntry(record: record, valueOffset: offset, valueLength: length))
    }
    guard entries.count == block.itemCount, end == block.offset else {
      throw reader.failure("does not add up")
    }
    return entries
  }

  /// Appends the entry to the plaintext of a block.
  package func append(to bytes: inout [UInt8]) {
    bytes += record.bytes
    if record.kind == .put { bytes += encode(valueOffset, UInt32(valueLength)) }
  }
}

extension BlockEntry: HistoryRecord {
  package var number: Int { record.sequence }
  package var date: Date { Timestamp.date(record.time) }
  /// Returns the metadata, which is empty for a remove. Throws `.tampered`.
  package func metadata() throws(SecretError) -> SecretMetadata {
    isRemoval ? SecretMetadata() : try record.item().metadata
  }
  package var isRemoval: Bool { record.kind == .remove }
  package var time: Int64 { record.time }
}

/// The order of the base: by lookup id, and the versions of one secret by sequence.
package struct VersionPosition: Comparable, Sendable {
  package let id: Bytes16
  package let sequence: Int

  package init(id: Bytes16, sequence: Int) { (self.id, self.sequence) = (id, sequence) }

  package init(_ record: Record) { self.init(id: record.id, sequence: record.sequence) }

  package static func < (left: Self, right: Self) -> Bool {
    left.id == right.id ? left.sequence < right.sequence : left.id < right.id
  }
}
