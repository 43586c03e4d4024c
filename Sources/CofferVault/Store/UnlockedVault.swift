package import CofferCore
package import CofferVaultFormat

/// The content of a vault as of the last look at its file: the current state, the index of the base, and the
/// tail.
///
/// Not thread-safe: the owner holds a lock.
package final class UnlockedVault {
  package let file: VaultFile
  package let keys: DerivedKeys
  package private(set) var slots: CommitSlots
  package let base: BaseIndex
  /// The last change in the tail of each secret that the tail names.
  private var tail: [Bytes16: TailEntry] = [:]
  /// The bytes of the tail that a reader has to read to find one secret: everything but values.
  private(set) var replayLength = 0

  private var blocks: [Int: [BlockEntry]] = [:]
  /// The number of decoded blocks that are kept, of about 100 items each.
  private static let maximumCachedBlocks = 1024

  package var state: CommitState { slots.state }

  enum TailEntry {
    case put(BlockEntry)
    /// Hides the secret of the base.
    case removed
  }

  /// Reads the commit slots, the root and the tail. Throws `.tampered` if any of them is not authentic.
  package init(_ file: VaultFile, keys: DerivedKeys) throws(SecretError) {
    self.file = file
    self.keys = keys
    slots = try CommitSlots(reading: file, keys: keys)
    let state = slots.state
    let root = try keys.open(
      file.storage.read(state.rootLength, at: state.rootOffset), tag: state.rootTag,
      .root(file: file.header.fileID, offset: state.rootOffset))
    base = try BaseIndex(parsing: root, start: file.baseStart, rootOffset: state.rootOffset)
    _ = try replay(from: state.baseEnd, previousTag: state.rootTag, sequence: base.sequence)
  }

  // MARK: Looking again

  /// Reads the commits that were made to the same file since the last look. Returns the names that they
  /// changed.
  func refresh() throws(SecretError) -> [SecretIdentifier] {
    guard try CommitSlots.nonces(of: file) != slots.nonces else { return [] }
    let before = state
    slots = try CommitSlots(reading: file, keys: keys)
    guard state.baseEnd == before.baseEnd, state.rootTag == before.rootTag else {
      throw .tampered("the base changed under an open vault")
    }
    guard state.sequence >= before.sequence, state.end >= before.end else {
      throw .rolledBack(path: file.path, seen: before.checkpoint, found: state.checkpoint)
    }
    return try replay(from: before.end, previousTag: before.tailTag, sequence: before.sequence)
  }

  /// Applies the frames from `offset` to the state's end. Returns the names that they change.
  private func replay(
    from offset: Int, previousTag: Bytes16, sequence: Int
  ) throws(SecretError) -> [SecretIdentifier] {
    var frames = TailReader(
      file, keys: keys, from: offset, to: state.end, previousTag: previousTag, sequence: sequence)
    var changed: [SecretIdentifier] = []
    while let frame = try frames.next() {
      replayLength += frame.replayLength
      switch frame.content {
      case .put(let item):
        tail[item.record.id] = .put(item)
        changed.append(try item.record.identifier())
      case .remove(let record):
        tail[record.id] = .removed
        changed.append(record.identifier)
      }
    }
    guard frames.previousTag == state.tailTag, frames.sequence == state.sequence else {
      throw .tampered("the tail is not the one that the commit slot names")
    }
    return changed
  }

  /// Applies a commit that this process has just made durable. `page` is the commit slot that was written.
  func adopt(
    _ state: CommitState, page: [UInt8], entries: [(Bytes16, TailEntry)], replayLength: Int
  ) {
    slots.advance(to: state, page: page)
    for (id, entry) in entries { tail[id] = entry }
    self.replayLength += replayLength
  }

  // MARK: Finding

  /// Returns the item with the lookup id `id`, or `nil`.
  package func find(_ id: Bytes16) throws(SecretError) -> BlockEntry? {
    switch tail[id] {
    case .put(let item): return item
    case .removed: return nil
    case nil: break
    }
    guard let index = base.block(for: id) else { return nil }
    if blocks[index] == nil {
      if blocks.count >= Self.maximumCachedBlocks { blocks.removeAll(keepingCapacity: true) }
      blocks[index] = try block(index)
    }
    guard let items = blocks[index] else { return nil }
    let position = items.partitioningIndex { $0.record.id >= id }
    return position < items.count && items[position].record.id == id ? items[position] : nil
  }

  /// Reads and decodes a block.
  package func block(_ index: Int) throws(SecretError) -> [BlockEntry] {
    let block = base.blocks[index]
    let bytes = try keys.open(
      file.storage.read(block.length, at: block.offset), tag: block.tag,
      .block(index, file: file.header.fileID, offset: block.offset))
    // The values of a block begin at the end of the part before it.
    let start = index == 0 ? file.baseStart : base.blocks[index - 1].end
    let items = try BlockEntry.parse(bytes, block: block, start: start, maximumSequence: base.sequence)
    if index + 1 < base.blocks.count, let last = items.last {
      guard last.record.id < base.blocks[index + 1].firstID else { throw .tampered("two blocks overlap") }
    }
    return items
  }

  /// Returns every item, in no particular order. Throws `.tampered` if their number is not the commit slot's.
  package func allItems() throws(SecretError) -> [BlockEntry] {
    var items: [BlockEntry] = []
    items.reserveCapacity(base.itemCount)
    for index in base.blocks.indices {
      items += try block(index).filter { tail[$0.record.id] == nil }
    }
    for case .put(let item) in tail.values { items.append(item) }
    guard items.count == state.itemCount else { throw .tampered("the number of secrets is wrong") }
    return items
  }

  /// Reads the sealed value of an item of this vault.
  func sealedValue(of item: BlockEntry) throws(SecretError) -> [UInt8] {
    try file.storage.read(item.valueLength, at: item.valueOffset)
  }

  /// Returns the value of an item of this vault.
  package func value(of item: BlockEntry) throws(SecretError) -> SecretBytes {
    try keys.openValue(sealedValue(of: item), vault: file.header.vaultID, record: item.record)
  }
}
