internal import CofferSystem
internal import CofferVaultFormat
internal import CofferCore
internal import Glibc

/// Writes a vault's file whole, under a temporary name, and puts it in its place.
///
/// There is a moment before which the old file counts and after which the new one does: the rename. A
/// failure before it leaves the old file as it was.
struct VaultFileWriter {
  /// An item of the new file. Items come sorted by `id`, none twice.
  struct Item {
    let id: Bytes16
    let record: [UInt8]
    let sealedValue: [UInt8]
  }

  private let location: Location
  private let path: String
  private let temporaryName: String
  private let file: any File
  private let header: Header
  private let headerBytes: [UInt8]
  private let keys: DerivedKeys
  private let randomness: any Randomness

  private var buffer: [UInt8] = []
  private var flushed: Int
  private var block: [UInt8] = []
  private var blockFirstID = Bytes16.zero
  private var blockItemCount = 0
  private var index: BaseIndex
  /// What the commit slots say, once the file is in place.
  private(set) var state: CommitState?

  private static let bufferSize = 1 << 20
  private var offset: Int { flushed + buffer.count }

  /// Begins a file. `header` has its id, slots and vault id; its file id is made here, and so are its
  /// commitment and MAC. The temporary file is locked from the first moment, so that nobody who finds it in
  /// the vault's place gets ahead of its writer.
  init(
    at location: Location,
    path: String,
    temporaryName: String,
    header: Header,
    keys: DerivedKeys,
    sequence: Int,
    randomness: any Randomness
  ) throws(SecretError) {
    var header = header
    header.fileID = randomness.bytes16()
    keys.seal(&header)
    self.location = location
    self.path = path
    self.temporaryName = temporaryName
    self.header = header
    self.keys = keys
    self.randomness = randomness
    headerBytes = header.bytes
    index = BaseIndex(sequence: sequence, itemCount: 0, blocks: [])
    flushed = headerBytes.count + 2 * Layout.pageSize
    do throws(FileSystemError) {
      file = try Self.makeFile(temporaryName, in: location.directory)
    } catch { throw .io(error, "write", path: path) }
    do throws(FileSystemError) {
      let file = file
      guard try uninterrupted({ () throws(FileSystemError) in try file.tryLock(exclusive: true) }) else {
        throw FileSystemError(EBUSY)
      }
    } catch {
      abandon()
      throw .io(error, "write", path: path)
    }
  }

  private static func makeFile(
    _ name: String,
    in directory: any Directory
  ) throws(FileSystemError) -> any File {
    func make() throws(FileSystemError) -> any File {
      try uninterrupted { () throws(FileSystemError) in try directory.create(name) }
    }
    do throws(FileSystemError) { return try make() } catch {
      guard error.number == EEXIST else { throw error }
      // The vault's lock is held here, so whoever left this is gone.
      try directory.remove(name)
      return try make()
    }
  }

  /// Removes the temporary file, after a failure.
  func abandon() {
    do throws(FileSystemError) { try location.directory.remove(temporaryName) } catch {
      // It stays behind, sealed as everything is; the next rewrite takes it away.
    }
  }

  mutating func append(_ item: Item) throws(SecretError) {
    if !block.isEmpty, block.count + item.record.count + BlockEntry.overhead > Layout.blockTarget {
      try closeBlock()
    }
    if block.isEmpty { blockFirstID = item.id }
    BlockEntry.append(
      record: item.record,
      valueOffset: offset,
      valueLength: item.sealedValue.count,
      to: &block
    )
    blockItemCount += 1
    try write(item.sealedValue)
  }

  private mutating func closeBlock() throws(SecretError) {
    let sealed = keys.sealBlock(
      block,
      file: header.fileID,
      offset: offset,
      index: index.blocks.count,
      randomness: randomness
    )
    index.blocks.append(
      BaseIndex.Block(
        firstID: blockFirstID,
        offset: offset,
        length: sealed.count,
        itemCount: blockItemCount,
        tag: Bytes16(tagOf: sealed)
      )
    )
    index.itemCount += blockItemCount
    block.removeAll(keepingCapacity: true)
    blockItemCount = 0
    try write(sealed)
  }

  private mutating func write(_ bytes: [UInt8]) throws(SecretError) {
    buffer += bytes
    if buffer.count >= Self.bufferSize { try flush() }
  }

  private mutating func flush() throws(SecretError) {
    do throws(FileSystemError) { try file.writeFully(buffer, at: flushed) } catch {
      throw .io(error, "write", path: path)
    }
    flushed += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes what is left, waits until all of it is on the disk, and renames it into place. The new file
  /// is locked by this process. When it throws, it is not in place.
  mutating func commit(replacing: Bool) throws(SecretError) {
    if !block.isEmpty { try closeBlock() }
    let rootOffset = offset
    let root = keys.sealRoot(index.bytes, file: header.fileID, offset: rootOffset, randomness: randomness)
    try write(root)
    try flush()
    let tag = Bytes16(tagOf: root)
    let state = CommitState(
      sequence: index.sequence,
      end: flushed,
      tailTag: tag,
      baseEnd: flushed,
      rootOffset: rootOffset,
      rootLength: root.count,
      rootTag: tag,
      itemCount: index.itemCount,
      deadBytes: 0
    )
    let headerHash = Sodium.hash(headerBytes.span, count: 32)
    var start = headerBytes
    for slot in 0...1 {
      start += keys.seal(state, slot: slot, headerHash: headerHash, randomness: randomness)
    }
    do throws(FileSystemError) {
      try file.writeFully(start, at: 0)
      try uninterrupted { () throws(FileSystemError) in try file.synchronize() }
      try location.directory.rename(temporaryName, to: location.name, replacing: replacing)
    } catch {
      throw error.number == EBUSY ? .mountedFile(path: path) : .io(error, "write", path: path)
    }
    self.state = state
  }

  /// Waits until the rename is on the disk. Only then is anything acknowledged.
  func settle() throws(SecretError) {
    do throws(FileSystemError) {
      try uninterrupted { () throws(FileSystemError) in try location.directory.synchronize() }
    } catch {
      throw .io(error, "write", path: path)
    }
  }
}

extension SecretError {
  /// That no new file can take the vault's place.
  static func mountedFile(path: String) -> SecretError {
    SecretError(
      .denied,
      "The vault at \(path) is mounted by itself, and cannot be replaced by a new file.",
      advice: "Secrets can be stored in it; to change its keys, mount its directory instead."
    )
  }
}
