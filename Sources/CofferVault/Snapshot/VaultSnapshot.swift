package import CofferCore
package import CofferVaultFormat
internal import Synchronization

/// The content of a vault in one state: the commit slots, the index of the base, and the tail.
///
/// A snapshot never changes. A later state is another snapshot, which shares the opened blocks. Thread-safe.
package final class VaultSnapshot: Sendable {
  package let file: VaultFile
  package let keys: DerivedKeys
  package let slots: CommitSlots
  package let base: BaseIndex
  package let tail: Tail
  private let lookupKey: SecretBytes
  private let blocks: OpenedBlocks
  /// Whether no process was writing when the file was opened in this state.
  let wasOpenedLocked: Bool

  /// The blocks of one base that were used last, by their offsets.
  private final class OpenedBlocks: Sendable {
    private let blocks = Mutex<[Int: Block]>([:])
    /// The number of blocks that are kept, of 16 KiB each.
    private let maximumCount = 64

    /// Returns the block at `offset`, which `open` opens if it is not kept. Throws what `open` throws.
    func block(at offset: Int, open: () throws(SecretError) -> Block) throws(SecretError) -> Block {
      if let block = blocks.withLock({ $0[offset] }) { return block }
      let block = try open()
      blocks.withLock { blocks in
        if blocks.count >= maximumCount { blocks = [:] }
        blocks[offset] = block
      }
      return block
    }
  }

  package var state: CommitState { slots.state }

  /// Reads the commit slots, the root and the tail. Throws `.tampered` if any of them is not authentic.
  package init(_ file: VaultFile, keys: DerivedKeys, isLocked: Bool = false) throws(SecretError) {
    (self.file, self.keys, wasOpenedLocked) = (file, keys, isLocked)
    blocks = OpenedBlocks()
    slots = try CommitSlots(reading: file, keys: keys)
    let state = slots.state
    let root = try Self.part(
      .root, of: file, keys, offset: state.rootOffset, length: state.rootLength, tag: state.rootTag)
    base = try BaseIndex(parsing: root, start: file.baseStart, rootOffset: state.rootOffset)
    let settings = base.settings
    lookupKey = SecretBytes(settings.lookupKey.span)
    var tail = Tail()
    try tail.read(
      file, keys, to: state, from: state.baseEnd,
      after: Checkpoint(sequence: base.sequence, tailTag: state.rootTag))
    self.tail = tail
  }

  /// The state after `former` that `slots` names, in the same file, which `storage` is now.
  init(after former: VaultSnapshot, _ slots: CommitSlots, _ tail: Tail, in storage: any MediumFile) {
    (file, keys, base) = (former.file.with(storage), former.keys, former.base)
    (blocks, lookupKey) = (former.blocks, former.lookupKey)
    (self.slots, self.tail, wasOpenedLocked) = (slots, tail, false)
  }

  /// Reads and opens a part of the base. Throws `.tampered` and `.io`.
  private static func part(
    _ part: BasePart, of file: VaultFile, _ keys: DerivedKeys, offset: Int, length: Int, tag: Bytes16
  ) throws(SecretError) -> [UInt8] {
    try keys.open(
      file.storage.read(length, at: offset), tag: tag,
      .base(part, file: file.header.fileID, offset: offset))
  }

  /// Returns the id that stands for a secret's name in the file.
  package func lookupID(_ identifier: SecretIdentifier) -> Bytes16 {
    BLAKE2b.hash(HashedMessage.lookupID(identifier).span, key: lookupKey, count: 16).withUnsafeBytes { Bytes16($0) }
  }

  // MARK: Later states

  /// Reads the commits that were made to the same file since, which `storage` is now. Returns the newer state and the
  /// names that they changed, or `nil` if nothing has changed. A name is `nil` if its record cannot be decoded; only a
  /// read of that secret throws then. Throws `.tampered`, `.rolledBack` and `.io`.
  func refreshed(
    in storage: any MediumFile
  ) throws(SecretError) -> (snapshot: VaultSnapshot, changed: [SecretIdentifier?])? {
    let file = file.with(storage)
    guard try CommitSlots.nonces(of: file) != slots.nonces else {
      // Only the leases of a vault on an engine may be others.
      if storage.identity == self.file.storage.identity { return nil }
      return (VaultSnapshot(after: self, slots, tail, in: storage), [])
    }
    let new = try CommitSlots(reading: file, keys: keys)
    guard new.state.baseEnd == state.baseEnd, new.state.rootTag == state.rootTag else {
      throw .tampered("the base changed under an open vault")
    }
    guard new.state.sequence >= state.sequence, new.state.end >= state.end else {
      throw .rolledBack(path: file.path, seen: state.checkpoint, found: new.state.checkpoint)
    }
    var tail = tail
    try tail.read(file, keys, to: new.state, from: state.end, after: state.checkpoint)
    var changed: [SecretIdentifier?] = []
    for frame in tail.frames[self.tail.frames.count...] {
      do throws(SecretError) {
        changed.append(try named(tail.entry(frame)).record.identifier())
      } catch { changed.append(nil) }
    }
    return (VaultSnapshot(after: self, new, tail, in: storage), changed)
  }

  /// Whether this vault was in the state `sequence` whose tag `isTag` accepts. `nil`: the file cannot show it, because
  /// the state is older than the changes that the root lists. Throws `.tampered` and `.io`.
  func shows(_ sequence: Int, isTag: (Bytes16) -> Bool) throws(SecretError) -> Bool? {
    if sequence > state.sequence { return false }
    if sequence > base.sequence {
      // The sequences of frames follow one another.
      return isTag(tail.frames[sequence - base.sequence - 1].tag)
    }
    if sequence == base.sequence { return isTag(state.rootTag) }
    if sequence < base.recent.floor { return nil }
    return try recentChanges().contains { $0.sequence == sequence && isTag($0.tailTag) }
  }

  /// The changes before the root, as the root lists them, in ascending order. Throws `.tampered` and `.io`.
  func recentChanges() throws(SecretError) -> [Checkpoint] {
    if base.recent.length == 0 { return [] }
    let (length, tag) = (base.recent.length, base.recent.tag)
    let bytes = try Self.part(.recent, of: file, keys, offset: state.rootOffset - length, length: length, tag: tag)
    return try Checkpoint.list(bytes, before: base)
  }

  // MARK: Finding

  /// Returns the current version of a secret, or `nil` if there is none. Throws `.tampered`.
  package func find(_ identifier: SecretIdentifier) throws(SecretError) -> BlockEntry? {
    try newest(identifier).flatMap { $0.isRemoval ? nil : $0 }
  }

  /// Returns the newest record of a secret, or `nil` if there is none. `id` is its lookup id, if that is known. Throws
  /// `.tampered`.
  func newest(_ identifier: SecretIdentifier, id: Bytes16? = nil) throws(SecretError) -> BlockEntry? {
    guard let newest = try newest(id ?? lookupID(identifier)) else { return nil }
    guard newest.record.isAbout(identifier) else { throw .foreignLookupID }
    return newest
  }

  private func newest(_ id: Bytes16) throws(SecretError) -> BlockEntry? {
    if let entry = try tail.newest(id) { return entry }
    guard let index = base.entries.index(for: id) else { return nil }
    let block = try block(base.entries[index])
    let next = block.index(of: VersionPosition(id: id, sequence: .max))
    guard next > 0, block.position(next - 1).id == id else { return nil }
    return try block.item(next - 1, valuesFrom: file.baseStart)
  }

  /// Returns every record of a secret, in ascending order. `id` is its lookup id, if that is known. Throws `.tampered`.
  package func records(_ identifier: SecretIdentifier, id: Bytes16? = nil) throws(SecretError) -> [BlockEntry] {
    let id = id ?? lookupID(identifier)
    var groups: [[BlockEntry]] = []
    // From the newest on: the versions of one secret may begin in an earlier block.
    for entry in base.entries.prefix(base.entries.index(for: id).map { $0 + 1 } ?? 0).reversed() {
      let block = try block(entry)
      var found: [BlockEntry] = []
      for index in block.index(of: VersionPosition(id: id, sequence: 0))..<block.count {
        if block.position(index).id != id { break }
        found.append(try block.item(index, valuesFrom: file.baseStart))
      }
      groups.append(found)
      if entry.first.id != id { break }
    }
    let records = try groups.reversed().flatMap(\.self) + tail.entries(id)
    guard records.allSatisfy({ $0.record.isAbout(identifier) }) else { throw .foreignLookupID }
    return records
  }

  // MARK: Blocks

  private func block(_ entry: BaseIndex.Entry) throws(SecretError) -> Block {
    try blocks.block(at: entry.offset) { () throws(SecretError) in try openBlock(entry) }
  }

  private func openBlock(_ entry: BaseIndex.Entry) throws(SecretError) -> Block {
    let bytes = try Self.part(.block, of: file, keys, offset: entry.offset, length: entry.length, tag: entry.tag)
    return try Block(bytes, entry: entry, maximumSequence: base.sequence)
  }

  /// Returns the record with the highest sequence in the base, or `nil` if there is none. Throws `.tampered`.
  func newestInBase() throws(SecretError) -> Record? {
    var newest: (sequence: Int, block: Block, index: Int)?
    for entry in base.entries {
      let block = try openBlock(entry)
      for index in 0..<block.count where block.position(index).sequence > newest?.sequence ?? 0 {
        newest = (block.position(index).sequence, block, index)
      }
    }
    guard let newest else { return nil }
    return try newest.block.item(newest.index, valuesFrom: file.baseStart).record
  }

  /// Calls `body` with the items of each block in the order of the base, and checks that the base has no gap. Throws
  /// `.tampered`.
  private func forEachBlock(_ body: ([BlockEntry]) throws(SecretError) -> Void) throws(SecretError) {
    var end = file.baseStart
    var last: VersionPosition?
    for entry in base.entries {
      guard last.map({ $0 < entry.first }) ?? true else { throw .tampered("two blocks overlap") }
      let items = try openBlock(entry).items(valuesFrom: end)
      end = entry.end
      last = items.last.map { VersionPosition($0.record) }
      try body(items)
    }
  }

  /// Calls `body` once for each secret, in the order of the lookup ids, with its records in ascending order. To include
  /// the changes of a transaction, pass its tail. Throws `.tampered` if a lookup id is not that of its names, or if a
  /// remove does not follow a put.
  func forEachSecret(_ tail: Tail? = nil, _ body: ([BlockEntry]) throws(SecretError) -> Void) throws(SecretError) {
    let tail = tail ?? self.tail
    let newer = tail.frames.sorted { $0.head.position < $1.head.position }
    var (records, next): ([BlockEntry], Int) = ([], 0)
    func finish() throws(SecretError) {
      guard let first = try records.first.map(named)?.record else { return }
      // One hash is enough for all versions of a secret.
      var followsPut = false
      for record in records.map(\.record) {
        guard record.hasName(of: first) else { throw .foreignLookupID }
        guard record.kind == .put || followsPut else { throw .tampered("a remove does not follow a put") }
        followsPut = record.kind == .put
      }
      try body(records)
      records.removeAll(keepingCapacity: true)
    }
    /// Adds the frames of the secrets up to `id`, or of all that are left.
    func addNewer(upTo id: Bytes16?) throws(SecretError) {
      while next < newer.count, id.map({ newer[next].head.id < $0 }) ?? true {
        if newer[next].head.id != records.first?.record.id { try finish() }
        records.append(try tail.entry(newer[next]))
        next += 1
      }
    }
    try forEachBlock { items throws(SecretError) in
      for entry in items {
        if entry.record.id != records.first?.record.id {
          try addNewer(upTo: entry.record.id)
          try finish()
        }
        records.append(entry)
      }
    }
    try addNewer(upTo: nil)
    try finish()
  }

  /// Returns `entry`. Throws `.tampered` if its lookup id is not that of its names.
  private func named(_ entry: BlockEntry) throws(SecretError) -> BlockEntry {
    guard lookupID(try entry.record.identifier()) == entry.record.id else { throw .foreignLookupID }
    return entry
  }

  /// Calls `body` with the current version of each secret in `service`, or of every secret if `service` is `nil`, and
  /// whether it is in conflict. Otherwise like ``forEachSecret(_:_:)``.
  func forEachItem(
    inService service: String?, _ tail: Tail? = nil, _ body: (BlockEntry, Bool) throws(SecretError) -> Void
  ) throws(SecretError) {
    try forEachSecret(tail) { records throws(SecretError) in
      guard let newest = records.last, !newest.isRemoval, newest.record.isInService(service) else { return }
      try body(newest, records.isInConflict)
    }
  }

  /// Whether a version of the secret is in conflict with `newest`, its current one. `false` if its other records are
  /// damaged, because a lookup does not need them.
  func isInConflict(_ newest: BlockEntry) throws(SecretError) -> Bool {
    // Only a merge makes conflicts, and it writes the base.
    if newest.record.sequence > base.sequence { return false }
    do throws(SecretError) { return try records(newest.record.identifier(), id: newest.record.id).isInConflict } catch {
      if error.code == .tampered { return false }
      throw error
    }
  }

  /// Returns the sorted identifiers and the metadata of the secrets in `service`, or of all secrets if `service` is
  /// `nil`. To include the changes of a transaction, pass its tail. Throws `.tampered`.
  func items(inService service: String?, _ tail: Tail? = nil) throws(SecretError) -> [SecretItem] {
    var items: [SecretItem] = []
    try forEachItem(inService: service, tail) { entry, isInConflict throws(SecretError) in
      items.append(try entry.record.item(isInConflict: isInConflict))
    }
    // Sorts only their places: an item is large.
    return items.indices.sorted { items[$0].identifier < items[$1].identifier }.map { items[$0] }
  }

  /// Returns an item of this vault with its value, which `read` reads. An error names its identifier.
  func secret(
    _ entry: BlockEntry, isInConflict: Bool, by read: (BlockEntry) throws(SecretError) -> [UInt8]
  ) throws(SecretError) -> Secret {
    let item = try entry.record.item()
    let value = try value(of: entry, for: item.identifier, by: read)
    return Secret(item.identifier, value: value, metadata: item.metadata, isInConflict: isInConflict)
  }

  /// Reads the sealed value of an item of this vault.
  func sealedValue(of item: BlockEntry) throws(SecretError) -> [UInt8] {
    try file.storage.read(item.record.valueLength, at: item.valueOffset)
  }

  /// Returns the value of an item of this vault. An error names `identifier`.
  package func value(of item: BlockEntry, for identifier: SecretIdentifier) throws(SecretError) -> SecretBytes {
    try value(of: item, for: identifier, by: sealedValue)
  }

  private func value(
    of item: BlockEntry, for identifier: SecretIdentifier,
    by read: (BlockEntry) throws(SecretError) -> [UInt8]
  ) throws(SecretError) -> SecretBytes {
    do throws(SecretError) {
      return try keys.openValue(read(item), vault: file.header.vaultID, record: item.record)
    } catch { throw error.about(identifier) }
  }
}
