package import CofferCore
package import CofferVaultFormat
internal import Synchronization

/// The content of a vault in one state: the commit slots, the index of the base, and the tail.
///
/// A snapshot never changes. A later state is another snapshot, which shares the decoded blocks. Thread-safe.
package final class VaultSnapshot: Sendable {
  package let file: VaultFile
  package let keys: DerivedKeys
  package let slots: CommitSlots
  package let base: BaseIndex
  private let tail: Tail
  private let blocks: DecodedBlocks
  /// Whether no process was writing when the file was opened in this state.
  let wasOpenedLocked: Bool

  /// The frames after the base.
  private struct Tail {
    /// The records for each secret that the tail names, in ascending order.
    var records: [Bytes16: [BlockEntry]] = [:]
    /// The tags of the frames in order.
    var tags: [Bytes16] = []
    /// The bytes that a reader has to read to find one secret: everything but values.
    var replayLength = 0

    mutating func add(_ frame: TailReader.Frame) {
      records[frame.entry.record.id, default: []].append(frame.entry)
      tags.append(frame.tag)
      replayLength += frame.replayLength
    }
  }

  /// The decoded blocks of one base.
  private final class DecodedBlocks: Sendable {
    private let blocks = Mutex<[Int: [BlockEntry]]>([:])
    /// The number of blocks that are kept, of about 100 items each.
    private static let maximumCount = 1024

    subscript(_ index: Int) -> [BlockEntry]? {
      get { blocks.withLock { $0[index] } }
      set {
        blocks.withLock { blocks in
          if blocks.count >= Self.maximumCount { blocks.removeAll(keepingCapacity: true) }
          blocks[index] = newValue
        }
      }
    }
  }

  package var state: CommitState { slots.state }
  /// The bytes of the tail that a reader has to read to find one secret: everything but values.
  var replayLength: Int { tail.replayLength }

  /// Reads the commit slots, the root and the tail. Throws `.tampered` if any of them is not authentic.
  package init(_ file: VaultFile, keys: DerivedKeys, isLocked: Bool = false) throws(SecretError) {
    (self.file, self.keys, wasOpenedLocked, blocks) = (file, keys, isLocked, DecodedBlocks())
    slots = try CommitSlots(reading: file, keys: keys)
    let state = slots.state
    let root = try keys.open(
      file.storage.read(state.rootLength, at: state.rootOffset), tag: state.rootTag,
      .root(file: file.header.fileID, offset: state.rootOffset))
    base = try BaseIndex(parsing: root, start: file.baseStart, rootOffset: state.rootOffset)
    var tail = Tail()
    _ = try Self.replay(
      slots.state, of: file, keys, from: state.baseEnd, previousTag: state.rootTag, sequence: base.sequence,
      into: &tail)
    self.tail = tail
  }

  /// The state after `former` that `slots` names, in the same file.
  private init(after former: VaultSnapshot, _ slots: CommitSlots, _ tail: Tail) {
    (file, keys, base, blocks) = (former.file, former.keys, former.base, former.blocks)
    (self.slots, self.tail, wasOpenedLocked) = (slots, tail, false)
  }

  // MARK: Later states

  /// Reads the commits that were made to the same file since. Returns the newer state and the names that they changed, or
  /// `nil` if there was no commit. Throws `.tampered`, `.rolledBack` and `.io`.
  func refreshed() throws(SecretError) -> (snapshot: VaultSnapshot, changed: [SecretIdentifier])? {
    guard try CommitSlots.nonces(of: file) != slots.nonces else { return nil }
    let new = try CommitSlots(reading: file, keys: keys)
    guard new.state.baseEnd == state.baseEnd, new.state.rootTag == state.rootTag else {
      throw .tampered("the base changed under an open vault")
    }
    guard new.state.sequence >= state.sequence, new.state.end >= state.end else {
      throw .rolledBack(path: file.path, seen: state.checkpoint, found: new.state.checkpoint)
    }
    var tail = tail
    let changed = try Self.replay(
      new.state, of: file, keys, from: state.end, previousTag: state.tailTag, sequence: state.sequence,
      into: &tail)
    return (VaultSnapshot(after: self, new, tail), changed)
  }

  /// Applies the frames from `offset` to the end of `state`. Returns the names that they change.
  private static func replay(
    _ state: CommitState, of file: VaultFile, _ keys: DerivedKeys, from offset: Int, previousTag: Bytes16,
    sequence: Int, into tail: inout Tail
  ) throws(SecretError) -> [SecretIdentifier] {
    var frames = TailReader(
      file, keys: keys, from: offset, to: state.end, previousTag: previousTag, sequence: sequence)
    var changed: [SecretIdentifier] = []
    while let frame = try frames.next() {
      let identifier = try frame.entry.record.identifier()
      guard keys.lookupID(identifier) == frame.entry.record.id else { throw .foreignLookupID }
      tail.add(frame)
      guard tail.replayLength <= Layout.maximumReplayLength else { throw .tampered("the tail is too long") }
      changed.append(identifier)
    }
    guard frames.previousTag == state.tailTag, frames.sequence == state.sequence else {
      throw .tampered("the tail is not the one that the commit slot names")
    }
    return changed
  }

  /// The state after a commit that this process has just made. `pages` are the commit slots as written.
  func committed(_ state: CommitState, pages: [[UInt8]], frames: [TailReader.Frame]) -> VaultSnapshot {
    var (slots, tail) = (slots, tail)
    slots.advance(to: state, pages: pages)
    for frame in frames { tail.add(frame) }
    return VaultSnapshot(after: self, slots, tail)
  }

  /// Returns the tag that ended the vault's chain when `sequence` was its last change, or `nil` if the file
  /// does not show it: the change is older than the last rewrite, or newer than the state.
  func tag(at sequence: Int) -> Bytes16? {
    if sequence == base.sequence { return state.rootTag }
    let index = sequence - base.sequence - 1
    return tail.tags.indices.contains(index) ? tail.tags[index] : nil
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
    if let entry = tail.records[id]?.last { return entry }
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
    records = records.reversed() + (tail.records[id] ?? [])
    guard records.allSatisfy({ $0.record.isAbout(identifier) }) else { throw .foreignLookupID }
    return records
  }

  private func cachedBlock(_ index: Int) throws(SecretError) -> [BlockEntry] {
    if let items = blocks[index] { return items }
    let items = try block(index)
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
      if let newer = tail.records[first.id] {
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
    for (id, records) in tail.records where !named.contains(id) { try body(records) }
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

  /// Returns the value of an item of this vault. An error is about `identifier`.
  package func value(
    of item: BlockEntry, for identifier: SecretIdentifier
  ) throws(SecretError) -> SecretBytes {
    do throws(SecretError) {
      return try keys.openValue(sealedValue(of: item), vault: file.header.vaultID, record: item.record)
    } catch { throw error.about(identifier) }
  }
}

extension [BlockEntry] {
  /// Returns the sorted identifiers and the metadata of the secrets in `service`, or of all secrets if it is `nil`.
  /// Throws `.tampered`.
  func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    var items: [SecretItem] = []
    for entry in self where entry.record.isInService(service) { items.append(try entry.record.item()) }
    return items.sorted { $0.identifier < $1.identifier }
  }
}
