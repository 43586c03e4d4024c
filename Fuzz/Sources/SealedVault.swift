import CofferSystem
import CofferVaultFormat
import CofferCore
import CofferSimulation
import CofferVault
import Foundation

/// A vault made of the fuzzer's input and sealed with the right keys, so that the input passes
/// authentication.
///
/// The input is a list of parts: kind `u8`, length `u16`, and that many bytes. Everything that a part does
/// not give is made as a writer makes it, so that the fuzzer can change one part and the rest fits.
struct SealedVault {
  private enum Part: UInt8 {
    /// Value length `u8`, value, record. Lookup id, sequence and tag in the record are corrected.
    case put
    /// The same without a correction.
    case rawPut
    /// A record. Its lookup id and sequence are corrected.
    case remove
    case rawRemove
    /// Like `put`, for the base.
    case item
    case rawItem
    /// Ends a block.
    case endOfBlock
    /// Offset `u8`, then bytes that replace those at the offset of the commit state.
    case commitEdit
    /// Offset `u16`, then bytes, for the root, the next block, or the next frame's metadata without padding.
    case rootEdit
    case blockEdit
    case frameEdit
    /// Minor version `u16`, read-only-compatible and compatible bits `u32`.
    case headerFields
    /// The plaintext of the next value with its padding.
    case paddedValue
    /// The metadata of the next frame with its padding.
    case paddedMetadata
    /// The keys of former master keys.
    case lineage
    /// The operations to run: a code in each byte.
    case operations
    /// A key slot without its length: type `u8`, version `u8`, number of further zeros `u16`, and the rest.
    case keySlot
    /// A field of the root: type `u16`, and the number of zeros in it `u16`.
    case rootField
    /// The root's sequence, `u64`.
    case baseSequence
  }
  private static let partCount: UInt8 = 19

  private static let master = SecretBytes(copying: [UInt8](repeating: 9, count: 32))
  private static let keys = DerivedKeys(master: master.copy(), randomness: randomness)
  private static let vaultID = Bytes16.zero
  private static let fileID = [UInt8](repeating: 3, count: 16).withUnsafeBytes { Bytes16($0) }
  private static let randomness = CountingRandomness()
  private static let credential = [UInt8](repeating: 7, count: 32)
  private static let slot: KeySlot = {
    let parameters = KeyParameters(salt: [UInt8](repeating: 1, count: 16))
    let header = KeySlot.header(id: .zero, parameters: parameters, created: 0, label: "")
    do {
      return try SlotKey(SecretBytes(copying: credential))
        .wrap(master, vault: vaultID, slotHeader: header, randomness: randomness)
    } catch { fatalError("\(error)") }
  }()

  private var header = Header(vaultID: vaultID, slots: [slot])
  private var tail: [UInt8] = []
  private let bytes: [UInt8]
  private let operations: [UInt8]
  private let names: Set<SecretIdentifier>

  init(_ input: [UInt8]) {
    let parts = Self.parts(input)
    let codes = parts.filter { $0.0 == .operations }.flatMap(\.1)
    operations = Array((codes.isEmpty ? Array(input.suffix(1)) : codes).prefix(3))
    header.fileID = Self.fileID
    for (part, body) in parts where part == .keySlot && header.slots.count < Layout.maximumKeySlots {
      if let slot = Self.keySlot(body) { header.slots.append(slot) }
    }
    for (part, body) in parts where part == .headerFields && body.count >= 10 {
      header.minorVersion = UInt16(body[0]) | UInt16(body[1]) << 8
      header.readOnlyCompatible = Self.u32(body, 2)
      header.compatible = Self.u32(body, 6)
    }
    Self.keys.authorize(&header)
    let start = header.bytes
    let headerHash = BLAKE2b.hash(start.span, count: 32)

    var base = Base(start: start.count + 2 * Layout.pageSize)
    for (part, body) in parts { base.add(part, body) }
    base.close()
    for (part, body) in parts where part == .baseSequence && body.count >= 8 {
      let number = (UInt64(Self.u32(body, 4)) << 32 | UInt64(Self.u32(body, 0))) % UInt64(Layout.numberLimit)
      base.sequence = max(base.sequence, Int(number))
    }
    var settings = BaseIndex.Settings(history: .standard)
    for (part, body) in parts where part == .lineage {
      settings.lineage = Self.keys.seal(Array(body), .lineage(vault: Self.vaultID))
    }
    var baseIndex = BaseIndex(sequence: base.sequence, settings: settings)
    (baseIndex.itemCount, baseIndex.blocks) = (base.itemCount, base.blocks)
    var index = baseIndex.bytes
    for (part, body) in parts where part == .rootField { Self.addField(&index, body) }
    for (part, body) in parts where part == .rootEdit { Self.edit(&index, body) }
    let rootOffset = base.offset
    let root = Self.keys.seal(index, .root(file: Self.fileID, offset: rootOffset))
    let rootTag = Bytes16(tagOf: root)
    let baseEnd = rootOffset + root.count

    var tail = Tail(offset: baseEnd, previousTag: rootTag, sequence: base.sequence, names: base.names)
    for (part, body) in parts { tail.add(part, body) }
    names = base.identifiers.union(tail.identifiers)
    var state = CommitState(
      sequence: tail.sequence, rootOffset: rootOffset, rootLength: root.count, rootTag: rootTag,
      secretCount: tail.names.values.count { $0 })
    (state.end, state.tailTag) = (tail.offset, tail.previousTag)
    var plaintext = state.bytes
    for (part, body) in parts where part == .commitEdit && !body.isEmpty {
      for (offset, byte) in body.dropFirst().enumerated() where Int(body[0]) + offset < plaintext.count {
        plaintext[Int(body[0]) + offset] = byte
      }
    }
    var bytes = start
    for slot in 0...1 { bytes += Self.keys.seal(plaintext, .commitSlot(slot, headerHash: headerHash)) }
    self.bytes = bytes + base.bytes + root + tail.bytes
  }

  // MARK: Checking

  /// Requires that the vault is refused or can be read, and that each operation keeps the rules of
  /// ``VaultOperations``.
  func check() {
    let disk = SimulatedDisk()
    do { _ = try disk.locate("vault", followingLink: true).directory.create("vault") } catch {
      fatalError("\(error)")
    }
    disk.overwrite("vault", with: bytes)
    let environment = VaultEnvironment(
      fileSystem: disk, randomness: Self.randomness, now: { Date(timeIntervalSince1970: 0) }, user: 0,
      uptime: { .zero }, sleep: { _ in })
    VaultOperations(disk: disk, environment: environment, credential: Self.credential)
      .run(operations, names: names)
  }

  // MARK: Making the file

  private static func parts(_ input: [UInt8]) -> [(Part, ArraySlice<UInt8>.SubSequence)] {
    var parts: [(Part, [UInt8])] = []
    var rest = input[...]
    while rest.count >= 3, parts.count < 40 {
      let (kind, low, high) = (rest[rest.startIndex], rest[rest.startIndex + 1], rest[rest.startIndex + 2])
      rest = rest.dropFirst(3)
      let body = rest.prefix(Int(low) | Int(high) << 8)
      rest = rest.dropFirst(body.count)
      if let part = Part(rawValue: kind % partCount) { parts.append((part, Array(body))) }
    }
    return parts.map { ($0.0, $0.1[...]) }
  }

  private static func u32(_ bytes: ArraySlice<UInt8>, _ offset: Int) -> UInt32 {
    (0..<4).reduce(0) { $0 | UInt32(bytes[bytes.startIndex + offset + $1]) << (8 * UInt32($1)) }
  }

  private static func keySlot(_ body: ArraySlice<UInt8>) -> KeySlot? {
    guard body.count >= 4 else { return nil }
    let zeros = Int(u32(body, 0) >> 16)
    let rest = body.dropFirst(4)
    let bytes = encode(
      body[body.startIndex], body[body.startIndex + 1], UInt16(clamping: 4 + zeros + rest.count), Array(rest),
      Zeros(zeros))
    do throws(SecretError) { return try KeySlot(parsing: bytes, from: 0, to: nil) } catch { return nil }
  }

  /// Adds a field at the end of the root's fields.
  private static func addField(_ index: inout [UInt8], _ body: ArraySlice<UInt8>) {
    guard body.count >= 4 else { return }
    let (type, count) = (UInt16(truncatingIfNeeded: u32(body, 0)), Int(u32(body, 0) >> 16))
    let length = Int(index[24]) | Int(index[25]) << 8
    guard length + 4 + count <= 65_535 else { return }
    index.insert(contentsOf: encode(type, UInt16(count), Zeros(count)), at: 26 + length)
    index.replaceSubrange(24..<26, with: encode(UInt16(length + 4 + count)))
  }

  private static func edit(_ bytes: inout [UInt8], _ body: ArraySlice<UInt8>) {
    guard body.count > 2 else { return }
    let place = Int(body[body.startIndex]) | Int(body[body.startIndex + 1]) << 8
    for (offset, byte) in body.dropFirst(2).enumerated() where place + offset < bytes.count {
      bytes[place + offset] = byte
    }
  }

  /// Seals a value with the fuzzer's padding for a record of `id` and `sequence`.
  private static func sealValue(_ padded: [UInt8], id: Bytes16, sequence: Int) -> [UInt8] {
    keys.seal(padded, .value(vault: vaultID, lookupID: id, sequence: sequence))
  }

  /// A record with its value. Lookup id, sequence and tag are corrected if the names can be read.
  private struct Stored {
    var record: [UInt8]
    let sealedValue: [UInt8]
    let position: VersionPosition
    let identifier: SecretIdentifier?

    /// `value` is `nil` for a remove.
    init?(_ body: [UInt8], value: [UInt8]?, paddedValue: [UInt8]?, sequence: Int, isRaw: Bool) {
      guard body.count > 33 else { return nil }
      record = body
      var id = record.withUnsafeBytes { Bytes16($0, at: 1) }
      var own = record.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 17, as: UInt64.self) }
      if !isRaw || own >= 1 << 62 { own = UInt64(sequence) }
      let names = Self.names(in: record)
      identifier = names?.identifier
      if !isRaw, let names { id = keys.lookupID(names.identifier) }
      position = VersionPosition(id: id, sequence: Int(own))
      sealedValue =
        value.map { sealValue(paddedValue ?? Padding.pad($0), id: id, sequence: Int(own)) } ?? []
      guard !isRaw else { return }
      record.replaceSubrange(1..<25, with: encode(id, own))
      if value != nil, let names, names.end + 16 <= record.count {
        record.replaceSubrange(names.end..<names.end + 16, with: encode(Bytes16(tagOf: sealedValue)))
      }
    }

    /// The names in a record, and the offset at which they end.
    private static func names(in record: [UInt8]) -> (identifier: SecretIdentifier, end: Int)? {
      do throws(SecretError) {
        var reader = ByteReader(record, from: 33, part: "a record")
        let service = try reader.text(1...1024)
        let account = try reader.text(1...1024)
        let identifier = try SecretIdentifier(
          service: record.text(in: service), account: record.text(in: account))
        return (identifier, reader.position)
      } catch { return nil }
    }
  }

  /// Splits the body of a part into its value and its record.
  private static func split(_ body: ArraySlice<UInt8>) -> (value: [UInt8], record: [UInt8])? {
    guard let count = body.first, body.count > Int(count) else { return nil }
    return (Array(body.dropFirst().prefix(Int(count))), Array(body.dropFirst(1 + Int(count))))
  }

  private struct Base {
    var bytes: [UInt8] = []
    var blocks: [BaseIndex.Block] = []
    /// The lookup ids, and whether the newest record of each is a put.
    var names: [Bytes16: Bool] = [:]
    var identifiers: Set<SecretIdentifier> = []
    var sequence = 1
    var itemCount = 0
    private let start: Int
    private var stored: [Stored] = []
    private var edits: [ArraySlice<UInt8>] = []
    private var paddedValue: [UInt8]?
    private var isRaw = false

    init(start: Int) { self.start = start }
    var offset: Int { start + bytes.count }

    mutating func add(_ part: Part, _ body: ArraySlice<UInt8>) {
      switch part {
      case .item, .rawItem:
        sequence += 1
        guard let (value, record) = SealedVault.split(body),
          let item = Stored(
            record, value: record.first == Record.Kind.remove.rawValue ? nil : value,
            paddedValue: paddedValue, sequence: sequence, isRaw: part == .rawItem)
        else { return }
        if part == .rawItem { isRaw = true }
        stored.append(item)
        paddedValue = nil
      case .endOfBlock: close()
      case .blockEdit: edits.append(body)
      case .paddedValue: paddedValue = Array(body)
      default: break
      }
    }

    mutating func close() {
      guard !stored.isEmpty else { return }
      // In the order of the format, unless the fuzzer gives an item as it is.
      if !isRaw { stored.sort { $0.position < $1.position } }
      var items: [UInt8] = []
      for item in stored {
        items += item.record
        let isPut = !item.sealedValue.isEmpty
        if isPut { items += encode(offset, UInt32(item.sealedValue.count)) }
        bytes += item.sealedValue
        names[item.position.id] = isPut
        if let name = item.identifier { identifiers.insert(name) }
      }
      for body in edits { SealedVault.edit(&items, body) }
      let sealed = keys.seal(items, .block(blocks.count, file: fileID, offset: offset))
      blocks.append(
        BaseIndex.Block(
          first: stored[0].position, offset: offset, length: sealed.count, itemCount: stored.count,
          tag: Bytes16(tagOf: sealed)))
      itemCount += stored.count
      bytes += sealed
      (stored, edits, isRaw) = ([], [], false)
    }
  }

  private struct Tail {
    var bytes: [UInt8] = []
    var offset: Int
    var previousTag: Bytes16
    var sequence: Int
    var names: [Bytes16: Bool]
    var identifiers: Set<SecretIdentifier> = []
    private var paddedValue: [UInt8]?
    private var paddedMetadata: [UInt8]?
    private var edits: [ArraySlice<UInt8>] = []

    init(offset: Int, previousTag: Bytes16, sequence: Int, names: [Bytes16: Bool]) {
      (self.offset, self.previousTag, self.sequence, self.names) = (offset, previousTag, sequence, names)
    }

    mutating func add(_ part: Part, _ body: ArraySlice<UInt8>) {
      switch part {
      case .put, .rawPut:
        guard let (value, record) = SealedVault.split(body),
          let put = Stored(
            record, value: value, paddedValue: paddedValue, sequence: sequence + 1, isRaw: part == .rawPut)
        else { return }
        append(put)
        names[put.position.id] = true
      case .remove, .rawRemove:
        guard
          let remove = Stored(
            Array(body), value: nil, paddedValue: nil, sequence: sequence + 1, isRaw: part == .rawRemove)
        else { return }
        append(remove)
        names[remove.position.id] = false
      case .paddedValue: paddedValue = Array(body)
      case .paddedMetadata: paddedMetadata = Array(body)
      case .frameEdit: edits.append(body)
      default: break
      }
    }

    private mutating func append(_ stored: Stored) {
      if let name = stored.identifier { identifiers.insert(name) }
      sequence += 1
      var metadata = encode(UInt32(stored.sealedValue.count), stored.record)
      for body in edits { SealedVault.edit(&metadata, body) }
      let plaintext = paddedMetadata ?? Padding.pad(metadata)
      let sealed = keys.seal(
        plaintext,
        .metadata(file: fileID, offset: offset, length: plaintext.count, previousTag: previousTag))
      let mask = keys.frameMask(nonce: Array(sealed[..<Layout.nonceLength]))
      let frame = encode(UInt32(plaintext.count) ^ mask, sealed, stored.sealedValue)
      bytes += frame
      offset += frame.count
      previousTag = Bytes16(tagOf: sealed)
      (paddedValue, paddedMetadata, edits) = (nil, nil, [])
    }
  }
}

/// Bytes that differ between calls and are the same in each run.
private final class CountingRandomness: Randomness, @unchecked Sendable {  // the fuzzer has one thread
  private var count: UInt64 = 0
  func fill(_ bytes: UnsafeMutableRawBufferPointer) {
    count += 1
    for index in bytes.indices {
      bytes[index] =
        index < 8 ? UInt8(truncatingIfNeeded: count >> (8 * index)) : UInt8(truncatingIfNeeded: index)
    }
  }
}
