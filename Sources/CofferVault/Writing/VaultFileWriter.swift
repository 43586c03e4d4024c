internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Glibc

/// Writes a whole vault file under a temporary name and moves it into place.
///
/// The old file counts up to the rename, and the new one from then on. A failure before the rename leaves the
/// old file unchanged.
struct VaultFileWriter {
  private let location: StorageLocation
  private let newFile: NewFile
  private var file: StorageFile { StorageFile(newFile.file, path: location.path) }
  private let header: Header
  private let keys: DerivedKeys

  private var buffer: [UInt8] = []
  private var flushed: Int
  private var block: [UInt8] = []
  private var blockFirst: VersionPosition?
  private var blockItemCount = 0
  /// The end of the part before the current block's values.
  private var blockStart: Int
  private var index: BaseIndex
  private var secretCount = 0
  private var last: Record?

  private static let bufferLength = 1 << 20
  private var offset: Int { flushed + buffer.count }

  /// Creates the temporary file. The writer sets the header's file id, commitment and MAC.
  ///
  /// The file is locked from the start, so that no process that finds it in the vault's place can change it
  /// before the writer has finished.
  init(
    at location: StorageLocation, header: Header, keys: DerivedKeys, sequence: Int,
    settings: BaseIndex.Settings
  ) throws(SecretError) {
    var header = header
    header.fileID = keys.randomness.bytes16()
    keys.authorize(&header)
    self.location = location
    self.header = header
    self.keys = keys
    index = BaseIndex(sequence: sequence, settings: settings)
    flushed = header.bytes.count + 2 * Layout.pageSize
    blockStart = flushed
    newFile = try location.createNew(keys.randomness)
  }

  /// Lets everybody read the new file if everybody may read `other`. The new file may have another group.
  func admitReaders(of other: VaultFile) throws(SecretError) {
    let readers = other.condition.now.status.mode & 0o044
    try file.setMode(0o600 | (readers & 0o004 == 0 ? 0 : readers))
  }

  /// Removes the temporary file after a failure.
  func abandon() { newFile.abandon() }

  /// Appends an item. Items must come in ascending order of their ids and sequences.
  mutating func append(_ record: Record, sealedValue: [UInt8]) throws(SecretError) {
    if !block.isEmpty, block.count + record.bytes.count + BlockEntry.overhead > Layout.blockTarget {
      try closeBlock()
    }
    if block.isEmpty { blockFirst = VersionPosition(record) }
    BlockEntry(record: record, valueOffset: offset, valueLength: sealedValue.count).append(to: &block)
    blockItemCount += 1
    if last?.kind == .put, last?.id != record.id { secretCount += 1 }
    last = record
    try write(sealedValue)
  }

  private mutating func closeBlock() throws(SecretError) {
    guard let first = blockFirst else { return }
    let sealed = keys.seal(block, .block(index.blocks.count, file: header.fileID, offset: offset))
    let entry = BaseIndex.Block(
      first: first, offset: offset, length: sealed.count, itemCount: blockItemCount,
      tag: Bytes16(tagOf: sealed))
    _ = try acceptable { () throws(SecretError) in
      try BlockEntry.parse(block, block: entry, start: blockStart, maximumSequence: index.sequence)
    }
    index.blocks.append(entry)
    index.itemCount += blockItemCount
    block.removeAll(keepingCapacity: true)
    blockFirst = nil
    blockItemCount = 0
    blockStart = entry.end
    try write(sealed)
  }

  private mutating func write(_ bytes: [UInt8]) throws(SecretError) {
    buffer += bytes
    if buffer.count >= Self.bufferLength { try flush() }
  }

  private mutating func flush() throws(SecretError) {
    try file.write(buffer, at: flushed)
    flushed += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes the rest, waits until the whole file is on the disk, and moves it into place. Returns its state.
  ///
  /// If it throws, the file is not in place. If it returns, nothing may be acknowledged before
  /// ``finishReplace()``.
  mutating func replace(existing: Bool) throws(SecretError) -> CommitState {
    try closeBlock()
    if last?.kind == .put { secretCount += 1 }
    let rootOffset = offset
    let indexBytes = index.bytes
    let root = keys.seal(indexBytes, .root(file: header.fileID, offset: rootOffset))
    try write(root)
    try flush()
    let state = CommitState(
      sequence: index.sequence, rootOffset: rootOffset, rootLength: root.count,
      rootTag: Bytes16(tagOf: root), secretCount: secretCount)
    var start = header.bytes
    let headerLength = start.count
    try acceptable { () throws(SecretError) in
      _ = try Header(parsing: start)
      _ = try BaseIndex(
        parsing: indexBytes, start: headerLength + 2 * Layout.pageSize, rootOffset: rootOffset)
      _ = try CommitState(parsing: state.bytes, headerLength: headerLength)
    }
    let headerHash = BLAKE2b.hash(start.span, count: 32)
    for slot in 0...1 { start += keys.seal(state.bytes, .commitSlot(slot, headerHash: headerHash)) }
    try file.write(start, at: 0)
    try location.put(newFile, replacing: existing)
    return state
  }

  /// Waits until the rename is on the disk.
  func finishReplace() throws(SecretError) { try location.synchronize() }
}
