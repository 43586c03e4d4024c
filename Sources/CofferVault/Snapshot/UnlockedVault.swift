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
  /// Whether no process was writing when the vault was opened.
  var wasOpenedLocked = false
  package let base: BaseIndex
  /// The records of the tail for each secret that the tail names, in ascending order.
  private var tail: [Bytes16: [BlockEntry]] = [:]
  /// The tags of the tail's frames in order.
  private var tailTags: [Bytes16] = []
  /// The bytes of the tail that a reader has to read to find one secret: everything but values.
  private(set) var replayLength = 0

  private var blocks: [Int: [BlockEntry]] = [:]
  /// The number of decoded blocks that are kept, of about 100 items each.
  private static let maximumCachedBlocks = 1024

  package var state: CommitState { slots.state }

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
    wasOpenedLocked = false
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
      let identifier = try frame.entry.record.identifier()
      guard keys.lookupID(identifier) == frame.entry.record.id else { throw .foreignLookupID }
      add(frame)
      guard replayLength <= Layout.maximumReplayLength else { throw .tampered("the tail is too long") }
      changed.append(identifier)
    }
    guard frames.previousTag == state.tailTag, frames.sequence == state.sequence else {
      throw .tampered("the tail is not the one that the commit slot names")
    }
    return changed
  }

  private func add(_ frame: TailReader.Frame) {
    tail[frame.entry.record.id, default: []].append(frame.entry)
    tailTags.append(frame.tag)
    replayLength += frame.replayLength
  }

  /// Applies a commit that this process has just made durable. `pages` are the commit slots as written.
  func adopt(_ state: CommitState, pages: [[UInt8]], frames: [TailReader.Frame]) {
    slots.advance(to: state, pages: pages)
    for frame in frames { add(frame) }
  }

  /// Returns the tag that ended the vault's chain when `sequence` was its last change, or `nil` if the file
  /// does not show it: the change is older than the last rewrite, or newer than the state.
  func tag(at sequence: Int) -> Bytes16? {
    if sequence == base.sequence { return state.rootTag }
    let index = sequence - base.sequence - 1
    return tailTags.indices.contains(index) ? tailTags[index] : nil
  }

  // MARK: Finding

  /// Returns the current version of a secret, or `nil` if there is none. Throws `.tampered`.
  package func find(_ identifier: SecretIdentifier) throws(SecretError) -> BlockEntry? {
    guard let newest = try newest(keys.lookupID(identifier)) else { return nil }
    guard newest.record.isAbout(identifier) else { throw .foreignLookupID }
    return newest.record.kind == .put ? newest : nil
  }

  /// Returns the newest record with a lookup id.
  private func newest(_ id: Bytes16) throws(SecretError) -> BlockEntry? {
    if let entry = tail[id]?.last { return entry }
    guard let index = base.block(for: id) else { return nil }
    let items = try cachedBlock(index)
    let next = items.partitioningIndex { $0.record.id > id }
    return next > 0 && items[next - 1].record.id == id ? items[next - 1] : nil
  }

  /// Returns every record of a secret, in ascending order. Throws `.tampered`.
  package func records(_ identifier: SecretIdentifier) throws(SecretError) -> [BlockEntry] {
    let id = keys.lookupID(identifier)
    // From the newest on: the versions of one secret may begin in an earlier block.
    var records: [BlockEntry] = []
    var block = base.block(for: id)
    while let index = block {
      let items = try cachedBlock(index)
      records += items.reversed().filter { $0.record.id == id }
      guard records.count <= Layout.maximumBaseRecords else { throw .tooManyRecords }
      block = items.first?.record.id == id && index > 0 ? index - 1 : nil
    }
    records = records.reversed() + (tail[id] ?? [])
    guard records.allSatisfy({ $0.record.isAbout(identifier) }) else { throw .foreignLookupID }
    return records
  }

  private func cachedBlock(_ index: Int) throws(SecretError) -> [BlockEntry] {
    if let items = blocks[index] { return items }
    let items = try block(index)
    if blocks.count >= Self.maximumCachedBlocks { blocks.removeAll(keepingCapacity: true) }
    blocks[index] = items
    return items
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
      guard VersionPosition(last.record) < base.blocks[index + 1].first else {
        throw .tampered("two blocks overlap")
      }
    }
    return items
  }

  /// Calls `body` with the records of each secret in ascending order, in the order of the base and then of
  /// the tail. Throws `.tampered` if a lookup id is not that of its names.
  func forEachSecret(
    _ body: ([BlockEntry]) throws(SecretError) -> Void
  ) throws(SecretError) {
    var named: Set<Bytes16> = []
    var records: [BlockEntry] = []
    func finish() throws(SecretError) {
      guard let first = records.first?.record else { return }
      // One hash for all versions of a secret.
      guard keys.lookupID(try first.identifier()) == first.id,
        records.allSatisfy({ $0.record.hasName(of: first) })
      else { throw .foreignLookupID }
      if let newer = tail[first.id] {
        records += newer
        named.insert(first.id)
      }
      try body(records)
      records = []
    }
    for index in base.blocks.indices {
      for entry in try block(index) {
        if entry.record.id != records.first?.record.id { try finish() }
        records.append(entry)
        guard records.count <= Layout.maximumBaseRecords else { throw .tooManyRecords }
      }
    }
    try finish()
    for (id, records) in tail where !named.contains(id) { try body(records) }
  }

  /// Returns the current version of every secret, in no particular order. Throws `.tampered` if their number
  /// is not the commit slot's.
  package func allItems() throws(SecretError) -> [BlockEntry] {
    var items: [BlockEntry] = []
    try forEachSecret { records in
      if let newest = records.last, newest.record.kind == .put { items.append(newest) }
    }
    guard items.count == state.secretCount else { throw .wrongSecretCount }
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
