internal import CofferCore
internal import CofferVaultFormat

/// Writes a whole vault file to a draft.
struct VaultFileWriter {
  let draft: any MediumDraft
  private let header: Header
  let keys: DerivedKeys

  private var buffer: [UInt8] = []
  private var flushed: Int
  private var block = BlockWriter()
  /// The end of the part before the current block's values.
  private var blockStart: Int
  private var index: BaseIndex
  private let leases: LeasePage

  private static let bufferLength = 1 << 20
  private var offset: Int { flushed + buffer.count }

  /// The writer sets the header's file id, commitment and MAC.
  init(_ draft: any MediumDraft, header: Header, keys: DerivedKeys, index: BaseIndex, leases: LeasePage = LeasePage()) {
    var header = header
    header.fileID = keys.randomness.bytes16()
    keys.authorize(&header)
    (self.draft, self.header, self.keys, self.index, self.leases) = (draft, header, keys, index, leases)
    flushed = header.bytes.count + Layout.pagesLength
    blockStart = flushed
  }

  /// Appends an item. Items must come in ascending order of their ids and sequences.
  mutating func append(_ record: Record, sealedValue: [UInt8]) throws(SecretError) {
    if block.isFull(before: record) { try closeBlock() }
    block.append(BlockEntry(record: record, valueOffset: offset))
    try write(sealedValue)
  }

  private mutating func closeBlock() throws(SecretError) {
    guard let first = block.first else { return }
    let (bytes, count) = (block.bytes, block.count)
    let entry = try write(.block, bytes, first: first, itemCount: count)
    _ = try acceptable { () throws(SecretError) in
      try Block(bytes, entry: entry, maximumSequence: index.sequence).items(valuesFrom: blockStart)
    }
    index.entries.append(entry)
    block = BlockWriter()
    blockStart = entry.end
  }

  /// Seals and writes a part of the base. Returns its entry.
  private mutating func write(
    _ part: BasePart, _ bytes: [UInt8], first: VersionPosition = VersionPosition(id: .zero, sequence: 0),
    itemCount: Int = 0
  ) throws(SecretError) -> BaseIndex.Entry {
    let sealed = keys.seal(bytes, .base(part, file: header.fileID, offset: offset))
    let entry = BaseIndex.Entry(
      first: first, offset: offset, length: sealed.count, itemCount: itemCount, tag: Bytes16(tagOf: sealed))
    try write(sealed)
    return entry
  }

  private mutating func write(_ bytes: [UInt8]) throws(SecretError) {
    buffer += bytes
    if buffer.count >= Self.bufferLength { try flush() }
  }

  private mutating func flush() throws(SecretError) {
    try draft.write(buffer, at: flushed)
    flushed += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes the rest. Returns the state of the file. `recent` are the changes before it, in ascending order.
  mutating func finish(recent: [Checkpoint] = []) throws(SecretError) -> CommitState {
    try closeBlock()
    if !recent.isEmpty {
      let list = recent.flatMap { encode($0.sequence, $0.tailTag) }
      let part = try write(.recent, list)
      (index.recent.length, index.recent.tag) = (part.length, part.tag)
    }
    let indexBytes = index.bytes
    guard indexBytes.count <= Layout.maximumPartLength else {
      throw SecretError(
        .tooLarge, "The vault would have more secrets and earlier versions than one file can list.",
        advice: "Lower its history limit, or store some of the secrets in another vault.")
    }
    let root = try write(.root, indexBytes)
    try flush()
    let state = CommitState(sequence: index.sequence, baseEnd: root.end, rootLength: root.length, rootTag: root.tag)
    var start = header.bytes
    let headerLength = start.count
    try acceptable { () throws(SecretError) in
      _ = try Header(parsing: start)
      _ = try BaseIndex(parsing: indexBytes, start: headerLength + Layout.pagesLength, rootOffset: root.offset)
      _ = try CommitState(parsing: state.bytes, headerLength: headerLength)
    }
    for slot in 0...1 { start += keys.seal(state.bytes, .commitSlot(slot, headerMAC: header.mac)) }
    try draft.write(start + leases.sealed(by: keys, for: header), at: 0)
    return state
  }
}
