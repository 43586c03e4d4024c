package import CofferVaultFormat
package import CofferCore

/// An unlocked vault as of its last look at the file: the current state, the index of the base, and what
/// the tail says. Not thread-safe; its owner has a lock.
package final class UnlockedVault {
  package let vault: VaultFile
  package let keys: DerivedKeys
  package private(set) var state: CommitState
  /// Which of the two commit slots holds ``state``.
  package private(set) var currentSlot: Int
  /// One commit slot does not open, which is what an interrupted commit leaves.
  package private(set) var isRecovered: Bool
  package private(set) var base: BaseIndex
  /// What the tail says of each name it mentions; `removed` hides what the base has.
  private var tail: [Bytes16: TailEntry] = [:]
  /// Bytes of the tail that a reader must go through to find one secret: everything but values.
  package private(set) var tailReplayBytes = 0
  /// A barrier failed: what the system says is on the disk may not be. The next change writes a new file.
  var isSuspect = false

  private var slotNonces: [UInt8]
  private var blocks: [Int: [BlockEntry]] = [:]
  /// Decoded blocks kept, each about 100 items.
  private static let maximumCachedBlocks = 1024

  enum TailEntry {
    case put(BlockEntry)
    case removed
  }

  /// Reads slots, root and tail. Throws `.tampered` where any of it is not authentic.
  package init(_ vault: VaultFile, keys: DerivedKeys) throws(SecretError) {
    self.vault = vault
    self.keys = keys
    let slots = try CommitSlots(reading: vault, keys: keys)
    (state, currentSlot, isRecovered, slotNonces) =
      (slots.state, slots.current, slots.isRecovered, slots.nonces)
    let sealedRoot = try vault.file.readFully(state.rootLength, at: state.rootOffset, path: vault.path)
    let root = try keys.openRoot(
      sealedRoot,
      tag: state.rootTag,
      file: vault.header.fileID,
      offset: state.rootOffset
    )
    base = try BaseIndex(
      parsing: root,
      start: vault.headerLength + 2 * Layout.pageSize,
      rootOffset: state.rootOffset
    )
    _ = try replay(from: state.baseEnd, previousTag: state.rootTag, sequence: base.sequence)
  }

  // MARK: Looking again

  /// Catches up with commits made meanwhile to this same file. Returns what they changed.
  package func refresh() throws(SecretError) -> [SecretIdentifier] {
    guard try CommitSlots.nonces(of: vault) != slotNonces else { return [] }
    let slots = try CommitSlots(reading: vault, keys: keys)
    guard slots.state.baseEnd == state.baseEnd, slots.state.rootTag == state.rootTag else {
      throw .tampered("the base changed under an open vault")
    }
    let before = state
    (state, currentSlot, isRecovered, slotNonces) =
      (slots.state, slots.current, slots.isRecovered, slots.nonces)
    guard state.sequence >= before.sequence, state.end >= before.end else {
      throw .rolledBack(path: vault.path, seen: before.checkpoint, found: state.checkpoint)
    }
    return try replay(from: before.end, previousTag: before.tailTag, sequence: before.sequence)
  }

  /// Goes through the frames from `offset` to the state's end. Returns the names they change.
  private func replay(
    from offset: Int,
    previousTag: Bytes16,
    sequence: Int
  ) throws(SecretError) -> [SecretIdentifier] {
    var frames = TailReader(
      vault,
      keys: keys,
      from: offset,
      to: state.end,
      previousTag: previousTag,
      sequence: sequence
    )
    var changed: [SecretIdentifier] = []
    while let frame = try frames.next() {
      tailReplayBytes += frame.cost
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
      throw .tampered("the tail is not the one the commit slot names")
    }
    return changed
  }

  /// Takes over what a commit of this process has just made durable.
  func adopt(_ state: CommitState, slot: Int, page: [UInt8], entries: [(Bytes16, TailEntry)], cost: Int) {
    self.state = state
    currentSlot = slot
    isRecovered = false
    slotNonces.replaceSubrange(
      slot * Layout.nonceLength..<(slot + 1) * Layout.nonceLength,
      with: page[..<Layout.nonceLength]
    )
    for (id, entry) in entries { tail[id] = entry }
    tailReplayBytes += cost
  }

  // MARK: Finding

  /// The item of that lookup id, or `nil`.
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
    var low = 0
    var high = items.count
    while low < high {
      let middle = (low + high) / 2
      if items[middle].record.id < id { low = middle + 1 } else { high = middle }
    }
    return low < items.count && items[low].record.id == id ? items[low] : nil
  }

  /// The items of a block, decoded.
  package func block(_ index: Int) throws(SecretError) -> [BlockEntry] {
    let block = base.blocks[index]
    let sealed = try vault.file.readFully(block.length, at: block.offset, path: vault.path)
    let bytes = try keys.openBlock(
      sealed,
      tag: block.tag,
      file: vault.header.fileID,
      offset: block.offset,
      index: index
    )
    let items = try BlockEntry.parse(
      bytes,
      block: block,
      start: startOfValues(ofBlock: index),
      maximumSequence: base.sequence
    )
    if index + 1 < base.blocks.count, let last = items.last {
      guard last.record.id < base.blocks[index + 1].firstID else {
        throw .tampered("two blocks overlap")
      }
    }
    return items
  }

  /// Where the values of a block begin: where the part before it ends.
  private func startOfValues(ofBlock index: Int) -> Int {
    guard index > 0 else { return vault.headerLength + 2 * Layout.pageSize }
    return base.blocks[index - 1].offset + base.blocks[index - 1].length
  }

  /// Every item there is, in no particular order. Throws `.tampered` where there are not as many as the
  /// commit slot says.
  package func allItems() throws(SecretError) -> [BlockEntry] {
    var items: [BlockEntry] = []
    items.reserveCapacity(base.itemCount)
    for index in base.blocks.indices {
      items += try block(index).filter { tail[$0.record.id] == nil }
    }
    for case .put(let item) in tail.values { items.append(item) }
    guard items.count == state.itemCount else { throw .tampered("the number of secrets does not agree") }
    return items
  }

  /// The value of an item that this vault gave out.
  package func value(of item: BlockEntry) throws(SecretError) -> SecretBytes {
    let sealed = try vault.file.readFully(item.valueLength, at: item.valueOffset, path: vault.path)
    return try keys.openValue(sealed, vault: vault.header.vaultID, record: item.record)
  }
}

extension SecretError {
  static func rolledBack(path: String, seen: Checkpoint, found: Checkpoint) -> SecretError {
    SecretError(
      .rolledBack,
      "The vault at \(path) is at change \(found.sequence), and change \(seen.sequence) was seen before.",
      advice: "An older copy was put in its place; if that was you, say so with `secret accept-rollback`.")
  }
}
