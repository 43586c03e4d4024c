package import CofferCore

/// The opened bytes of a block: a directory, by which a secret is found without decoding an item, then the items.
package struct Block: Sendable {
  private let bytes: [UInt8]
  private let entry: BaseIndex.Entry

  /// Takes the plaintext of the block that `entry` names. Throws `.tampered` unless the directory is in order: whoever
  /// searches it gets the same answer as whoever reads all of it.
  package init(_ bytes: [UInt8], entry: BaseIndex.Entry, maximumSequence: Int) throws(SecretError) {
    guard entry.itemCount <= bytes.count / Layout.directoryEntryLength else { throw .tampered("a block is cut short") }
    (self.bytes, self.entry) = (bytes, entry)
    guard position(0) == entry.first, offset(0) == count * Layout.directoryEntryLength,
      (0..<count).allSatisfy({ index in
        (index == 0 || position(index - 1) < position(index)) && offset(index) <= offset(index + 1)
          && position(index).sequence > 0 && position(index).sequence <= maximumSequence
      })
    else { throw .tampered("a block has a directory that is wrong") }
  }

  package var count: Int { entry.itemCount }

  /// The position of an item, from the directory. For a sequence above the limit of the format, this is the largest
  /// number.
  package func position(_ index: Int) -> VersionPosition {
    bytes.withUnsafeBytes { bytes in
      let start = index * Layout.directoryEntryLength
      let sequence: UInt64 = bytes.integer(at: start + 16)
      return VersionPosition(id: Bytes16(bytes, at: start), sequence: Int(clamping: sequence))
    }
  }

  /// The offset in the block at which an item begins, and the one before it ends.
  private func offset(_ index: Int) -> Int {
    if index == count { return bytes.count }
    return bytes.withUnsafeBytes { Int($0.integer(at: index * Layout.directoryEntryLength + 24) as UInt32) }
  }

  /// The index of the first item that is not before `position`, or ``count``.
  package func index(of position: VersionPosition) -> Int {
    (0..<count).partitioningIndex { self.position($0) >= position }
  }

  /// Decodes an item whose value is at `start` of the file or later, and before the block. Throws `.tampered`, and
  /// `.unsupportedVersion` for an unknown critical field.
  package func item(_ index: Int, valuesFrom start: Int) throws(SecretError) -> BlockEntry {
    let position = position(index)
    var reader = ByteReader(bytes, from: offset(index), to: offset(index + 1), part: "a block")
    let record = try Record(id: position.id, sequence: position.sequence, parsing: &reader)
    let valueOffset = record.kind == .put ? try reader.number() : 0
    try reader.expectEnd()
    guard record.kind == .remove || valueOffset >= start && valueOffset <= entry.offset - record.valueLength else {
      throw .tampered("a value is not before its block")
    }
    return BlockEntry(record: record, valueOffset: valueOffset)
  }

  /// Decodes all items, whose values fill the file from `start` to the block. Throws `.tampered` and
  /// `.unsupportedVersion`.
  package func items(valuesFrom start: Int) throws(SecretError) -> [BlockEntry] {
    var items: [BlockEntry] = []
    items.reserveCapacity(count)
    var end = start
    for index in 0..<count {
      let item = try item(index, valuesFrom: start)
      guard item.record.kind == .remove || item.valueOffset == end else {
        throw .tampered("a block has values that are not side by side")
      }
      end += item.record.valueLength
      items.append(item)
    }
    guard end == entry.offset else { throw .tampered("a block does not add up") }
    return items
  }
}

/// Collects the items of a block that is being written.
package struct BlockWriter {
  private var items: [UInt8] = []
  /// The offset of each item after the directory.
  private var offsets: [Int] = []
  private var positions: [VersionPosition] = []

  package init() {}

  package var count: Int { positions.count }
  package var first: VersionPosition? { positions.first }

  /// Whether the item of `record` would make the block longer than ``Layout/blockTarget``.
  package func isFull(before record: Record) -> Bool {
    let length = items.count + (count + 1) * Layout.directoryEntryLength + record.bytes.count + 8
    return count > 0 && length > Layout.blockTarget
  }

  package mutating func append(_ entry: BlockEntry) {
    offsets.append(items.count)
    positions.append(VersionPosition(entry.record))
    items += entry.record.bytes
    if entry.record.kind == .put { items += encode(entry.valueOffset) }
  }

  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    let length = count * Layout.directoryEntryLength
    bytes.reserveCapacity(length + items.count)
    for (position, offset) in zip(positions, offsets) {
      position.id.append(to: &bytes)
      position.sequence.append(to: &bytes)
      UInt32(length + offset).append(to: &bytes)
    }
    return bytes + items
  }
}
