import CofferSystem
import CofferVaultFormat
import CofferCore
import CofferSimulation
import CofferVault
import Foundation

/// A vault made of the fuzzer's input and sealed with the right keys, so that the input passes authentication.
///
/// The input is a list of parts: kind `u8`, length `u16`, and that many bytes. Everything that a part does not give is
/// made as a writer makes it, so that the fuzzer can change one part and the rest fits.
struct SealedVault {
  private enum Part: UInt8 {
    /// Value length `u8`, value, record as in a frame. Lookup id, sequence, length and tag are corrected.
    case put
    /// The same with the lookup id and the sequence as they are.
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
    /// Offset `u16`, then bytes, for the root, the next block, or the next frame without padding.
    case rootEdit
    case blockEdit
    case frameEdit
    /// The floor `u64`, and the list of recent changes.
    case recentChanges
    /// Read-only-compatible and compatible bits `u32`.
    case headerFields
    /// The plaintext of the next value with its padding.
    case paddedValue
    /// The next frame with its padding.
    case paddedFrame
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
  private static let partCount: UInt8 = 20

  private static let master = SecretBytes([UInt8](repeating: 9, count: 32))
  private static let keys = DerivedKeys(master: master, randomness: randomness)
  private static let vaultID = Bytes16.zero
  private static let lookupKey = [UInt8](repeating: 5, count: 32)
  private static let fileID = [UInt8](repeating: 3, count: 16).withUnsafeBytes { Bytes16($0) }
  private static let randomness = CountingRandomness()
  /// Leaves the operations out, so that more files are read in the same time.
  private static let onlyReads = getenv("COFFER_FUZZ_ONLY_READS") != nil
  private static let credential = [UInt8](repeating: 7, count: 32)
  private static let slot: KeySlot = {
    let salt = [UInt8](repeating: 1, count: 16)
    let header = KeySlot.header(id: .zero, parameters: .key(salt: salt), created: 0, label: "")
    do {
      return try SlotKey(SecretBytes(credential))
        .wrap(master, vault: vaultID, slotHeader: header, randomness: randomness)
    } catch { fatalError("\(error)") }
  }()

  private var header = Header(vaultID: vaultID, slots: [slot])
  private var tail: [UInt8] = []
  private let bytes: [UInt8]
  private let operations: [UInt8]
  private let names: Set<SecretIdentifier>
  /// Whether a version may count beyond a limit of the history because it lost in a merge.
  private let mayConflict: Bool

  init(_ input: [UInt8]) {
    let parts = Self.parts(input)
    let codes = parts.filter { $0.0 == .operations }.flatMap(\.1)
    operations = Array((codes.isEmpty ? Array(input.suffix(1)) : codes).prefix(3))
    header.fileID = Self.fileID
    for (part, body) in parts where part == .keySlot && header.slots.count < Layout.maximumKeySlots {
      if let slot = Self.keySlot(body) { header.slots.append(slot) }
    }
    for (part, body) in parts where part == .headerFields && body.count >= 8 {
      header.readOnlyCompatible = Self.u32(body, 0)
      header.compatible = Self.u32(body, 4)
    }
    Self.keys.authorize(&header)
    let start = header.bytes
    var base = Base(start: start.count + Layout.pagesLength)
    for (part, body) in parts { base.add(part, body) }
    base.close()
    for (part, body) in parts where part == .baseSequence && body.count >= 8 {
      base.sequence = max(base.sequence, Self.number(body))
    }
    var recent = BaseIndex.Recent(floor: base.sequence)
    for (part, body) in parts where part == .recentChanges && body.count > 8 {
      let list = base.append(.recent, Array(body.dropFirst(8)))
      recent = BaseIndex.Recent(floor: Self.number(body), length: list.length, tag: list.tag)
      break
    }
    var settings = BaseIndex.Settings(lookupKey: Self.lookupKey, history: .standard)
    for (part, body) in parts where part == .lineage {
      settings.lineage = Self.keys.seal(Array(body), .lineage(vault: Self.vaultID))
    }
    var baseIndex = BaseIndex(sequence: base.sequence, settings: settings, recent: recent)
    baseIndex.entries = base.blocks
    var index = baseIndex.bytes
    for (part, body) in parts where part == .rootField { Self.addField(&index, body) }
    for (part, body) in parts where part == .rootEdit { Self.edit(&index, body) }
    let root = base.append(.root, index)

    var tail = Tail(offset: root.end, previousTag: root.tag, sequence: base.sequence)
    for (part, body) in parts { tail.add(part, body) }
    names = base.identifiers.union(tail.identifiers)
    mayConflict =
      base.hasConflict || tail.hasConflict || parts.contains { [.blockEdit, .frameEdit].contains($0.0) }
    var state = CommitState(
      sequence: tail.sequence, baseEnd: root.end, rootLength: root.length, rootTag: root.tag)
    (state.end, state.tailTag) = (tail.offset, tail.previousTag)
    var plaintext = state.bytes
    for (part, body) in parts where part == .commitEdit && !body.isEmpty {
      for (offset, byte) in body.dropFirst().enumerated() where Int(body[0]) + offset < plaintext.count {
        plaintext[Int(body[0]) + offset] = byte
      }
    }
    var bytes = start
    for slot in 0...1 { bytes += Self.keys.seal(plaintext, .commitSlot(slot, headerMAC: header.mac)) }
    self.bytes = bytes + zeros(Layout.pageSize) + base.bytes + tail.bytes
  }

  // MARK: Checking

  /// Requires that the vault is refused or can be read, and that each operation keeps the rules of ``VaultOperations``.
  func check() {
    let disk = SimulatedDisk()
    do { _ = try disk.locate("vault", followingLink: true).directory.create("vault") } catch {
      fatalError("\(error)")
    }
    disk.overwrite("vault", with: bytes)
    let environment = VaultEnvironment(
      fileSystem: disk, randomness: Self.randomness, now: { Date(timeIntervalSince1970: 0) }, user: 0,
      uptime: { .zero }, sleep: { _ in })
    VaultOperations(
      disk: disk, environment: environment, credential: Self.credential, mayConflict: mayConflict
    )
    .run(Self.onlyReads ? [] : operations, names: names)
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

  /// A number below the limit of the format.
  private static func number(_ body: ArraySlice<UInt8>) -> Int {
    Int((UInt64(u32(body, 4)) << 32 | UInt64(u32(body, 0))) % UInt64(Layout.numberLimit))
  }

  private static func keySlot(_ body: ArraySlice<UInt8>) -> KeySlot? {
    guard body.count >= 4 else { return nil }
    let zeros = Int(u32(body, 0) >> 16)
    let rest = body.dropFirst(4)
    let bytes = encode(
      body[body.startIndex], body[body.startIndex + 1], UInt16(clamping: 4 + zeros + rest.count), Array(rest),
      [UInt8](repeating: 0, count: zeros))
    do throws(SecretError) { return try KeySlot(parsing: bytes, from: 0, to: nil) } catch { return nil }
  }

  /// Adds a field at the end of the root's fields.
  private static func addField(_ index: inout [UInt8], _ body: ArraySlice<UInt8>) {
    guard body.count >= 4 else { return }
    let (type, count) = (UInt16(truncatingIfNeeded: u32(body, 0)), Int(u32(body, 0) >> 16))
    let start = Layout.rootPrefixLength
    let length = Int(u32(index[start...], 0))
    index.insert(contentsOf: encode(type, UInt32(count), zeros(count)), at: start + 4 + length)
    index.replaceSubrange(start..<start + 4, with: encode(UInt32(length + 6 + count)))
  }

  private static func edit(_ bytes: inout [UInt8], _ body: ArraySlice<UInt8>) {
    guard body.count > 2 else { return }
    let place = Int(body[body.startIndex]) | Int(body[body.startIndex + 1]) << 8
    for (offset, byte) in body.dropFirst(2).enumerated() where place + offset < bytes.count {
      bytes[place + offset] = byte
    }
  }

  /// Splits the body of a part into its value and its record.
  private static func split(_ body: ArraySlice<UInt8>) -> (value: [UInt8], record: [UInt8])? {
    guard let count = body.first, body.count > Int(count) else { return nil }
    return (Array(body.dropFirst().prefix(Int(count))), Array(body.dropFirst(1 + Int(count))))
  }

  /// A record with its value. Lookup id, sequence, length and tag are corrected if the names can be read.
  private struct Stored {
    /// The plaintext of a frame, without padding.
    var frame: [UInt8]
    let sealedValue: [UInt8]
    let position: VersionPosition
    let identifier: SecretIdentifier?
    let hasConflict: Bool

    // Offsets in a frame.
    private static let (kind, length, putNames, removeNames) = (24, 41, 61, 33)

    /// `value` is `nil` for a remove.
    init?(_ body: [UInt8], value: [UInt8]?, paddedValue: [UInt8]?, sequence: Int, isRaw: Bool) {
      let start = value == nil ? Self.removeNames : Self.putNames
      guard body.count > start else { return nil }
      frame = body
      var id = frame.withUnsafeBytes { Bytes16($0) }
      var own = frame.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self) }
      if !isRaw || own >= 1 << 62 { own = UInt64(sequence) }
      identifier = Self.identifier(in: frame, at: start)
      if !isRaw, let identifier {
        id = BLAKE2b.hash(
          HashedMessage.lookupID(identifier).span, key: SecretBytes(lookupKey), count: 16
        ).withUnsafeBytes { Bytes16($0) }
      }
      position = VersionPosition(id: id, sequence: Int(own))
      sealedValue =
        value.map {
          keys.seal(
            paddedValue ?? Padding.pad($0), .value(vault: vaultID, lookupID: id, sequence: Int(own)))
        } ?? []
      frame.replaceSubrange(0..<Self.kind, with: encode(id, own))
      if value != nil {
        frame.replaceSubrange(
          Self.length..<start, with: encode(UInt32(sealedValue.count), Bytes16(tagOf: sealedValue)))
      }
      do throws(SecretError) { hasConflict = try Record(frame: frame).conflict != nil } catch {
        hasConflict = false
      }
    }

    /// The names in a record.
    private static func identifier(in frame: [UInt8], at start: Int) -> SecretIdentifier? {
      do throws(SecretError) {
        var reader = ByteReader(frame, from: start, part: "a record")
        let service = try reader.text(1...1024)
        let account = try reader.text(1...1024)
        return try SecretIdentifier(service: frame.text(in: service), account: frame.text(in: account))
      } catch { return nil }
    }

    var isRemove: Bool { sealedValue.isEmpty }

    /// The record without its position, as a block has it.
    var body: ArraySlice<UInt8> { frame[Self.kind...] }

    static func isRemove(_ frame: [UInt8]) -> Bool {
      frame.count > kind && frame[kind] == Record.Kind.remove.rawValue
    }
  }

  private struct Base {
    var bytes: [UInt8] = []
    var identifiers: Set<SecretIdentifier> = []
    var hasConflict = false
    var sequence = 1
    private(set) var blocks: [BaseIndex.Entry] = []
    private let start: Int
    private var stored: [Stored] = []
    private var edits: [ArraySlice<UInt8>] = []
    private var paddedValue: [UInt8]?
    private var isRaw = false

    init(start: Int) { self.start = start }
    private var offset: Int { start + bytes.count }

    mutating func add(_ part: Part, _ body: ArraySlice<UInt8>) {
      switch part {
      case .item, .rawItem:
        sequence += 1
        guard let (value, record) = SealedVault.split(body),
          let item = Stored(
            record, value: Stored.isRemove(record) ? nil : value, paddedValue: paddedValue,
            sequence: sequence,
            isRaw: part == .rawItem)
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
      var (directory, items): ([UInt8], [UInt8]) = ([], [])
      for item in stored {
        directory += encode(
          item.position.id, item.position.sequence,
          UInt32(stored.count * Layout.directoryEntryLength + items.count))
        items += item.body
        if !item.isRemove { items += encode(offset) }
        bytes += item.sealedValue
        if let name = item.identifier { identifiers.insert(name) }
        hasConflict = hasConflict || item.hasConflict
      }
      var plaintext = directory + items
      for body in edits { SealedVault.edit(&plaintext, body) }
      blocks.append(append(.block, plaintext, first: stored[0].position, itemCount: stored.count))
      (stored, edits, isRaw) = ([], [], false)
    }

    /// Seals a part and appends it.
    mutating func append(
      _ part: BasePart, _ plaintext: [UInt8],
      first: VersionPosition = VersionPosition(id: .zero, sequence: 0),
      itemCount: Int = 0
    ) -> BaseIndex.Entry {
      let sealed = keys.seal(plaintext, .base(part, file: fileID, offset: offset))
      let entry = BaseIndex.Entry(
        first: first, offset: offset, length: sealed.count, itemCount: itemCount, tag: Bytes16(tagOf: sealed))
      bytes += sealed
      return entry
    }
  }

  private struct Tail {
    var bytes: [UInt8] = []
    var offset: Int
    var previousTag: Bytes16
    var sequence: Int
    var identifiers: Set<SecretIdentifier> = []
    var hasConflict = false
    private var paddedValue: [UInt8]?
    private var paddedFrame: [UInt8]?
    private var edits: [ArraySlice<UInt8>] = []

    init(offset: Int, previousTag: Bytes16, sequence: Int) {
      (self.offset, self.previousTag, self.sequence) = (offset, previousTag, sequence)
    }

    mutating func add(_ part: Part, _ body: ArraySlice<UInt8>) {
      switch part {
      case .put, .rawPut:
        guard let (value, record) = SealedVault.split(body) else { return }
        append(record, value, isRaw: part == .rawPut)
      case .remove, .rawRemove: append(Array(body), nil, isRaw: part == .rawRemove)
      case .paddedValue: paddedValue = Array(body)
      case .paddedFrame: paddedFrame = Array(body)
      case .frameEdit: edits.append(body)
      default: break
      }
    }

    private mutating func append(_ record: [UInt8], _ value: [UInt8]?, isRaw: Bool) {
      guard
        let stored = Stored(
          record, value: value, paddedValue: paddedValue, sequence: sequence + 1, isRaw: isRaw)
      else { return }
      if let name = stored.identifier { identifiers.insert(name) }
      hasConflict = hasConflict || stored.hasConflict
      sequence += 1
      var frame = stored.frame
      for body in edits { SealedVault.edit(&frame, body) }
      let plaintext = paddedFrame ?? Padding.pad(frame)
      let sealed = keys.seal(
        plaintext,
        .metadata(file: fileID, offset: offset, length: plaintext.count, previousTag: previousTag))
      let mask = sealed.withUnsafeBytes {
        keys.frameMask(nonce: UnsafeRawBufferPointer(rebasing: $0[..<Layout.nonceLength]))
      }
      let whole = encode(UInt32(plaintext.count) ^ mask, sealed, stored.sealedValue)
      bytes += whole
      offset += whole.count
      previousTag = Bytes16(tagOf: sealed)
      (paddedValue, paddedFrame, edits) = (nil, nil, [])
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
