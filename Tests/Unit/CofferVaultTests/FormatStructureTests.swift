import CofferCore
import CofferTestSupport
import CofferVaultFormat
import FoundationEssentials
import Testing

/// Each bound of the parsers of headers, bases, blocks and records, on both sides.
@Suite struct FormatStructureTests {
  private static func id(_ digit: Int) -> Bytes16 {
    [UInt8](repeating: UInt8(digit), count: 16).withUnsafeBytes { Bytes16($0) }
  }

  // MARK: The root

  private static let start = 12_288

  private static func block(_ id: Int, at offset: Int, length: Int = 400, items: Int = 2) -> BaseIndex.Block {
    BaseIndex.Block(
      first: VersionPosition(id: Self.id(id), sequence: 1), offset: offset, length: length, itemCount: items,
      tag: .zero)
  }

  private func isRead(
    _ blocks: [BaseIndex.Block], rootOffset: Int? = nil, items: Int? = nil, lineage: [UInt8]? = nil
  ) -> Bool {
    var index = BaseIndex(sequence: 4, settings: BaseIndex.Settings(history: .standard, lineage: lineage))
    index.blocks = blocks
    index.itemCount = items ?? blocks.reduce(0) { $0 + $1.itemCount }
    let bytes = index.bytes
    let root = rootOffset ?? blocks.last?.end ?? Self.start
    return reads { () throws(SecretError) in
      let parsed = try BaseIndex(parsing: bytes, start: Self.start, rootOffset: root)
      #expect(parsed.bytes == bytes)
      return parsed
    }
  }

  @Test func theBlocksOfABaseFillItInOrder() {
    let (first, second) = (Self.block(1, at: 12_300), Self.block(2, at: 12_800))
    #expect(isRead([]) && isRead([first]) && isRead([first, second]))
    #expect(isRead([Self.block(1, at: 12_288)]) && !isRead([Self.block(1, at: 12_287)]))
    #expect(isRead([first, Self.block(2, at: 12_700)]) && !isRead([first, Self.block(2, at: 12_699)]))
    #expect(
      !isRead([first, Self.block(1, at: 12_800)])
        && !isRead([Self.block(2, at: 12_300), Self.block(1, at: 12_800)]))
    #expect(!isRead([first], rootOffset: first.end + 1) && !isRead([first], rootOffset: first.end - 1))
    #expect(!isRead([first], rootOffset: first.offset) && !isRead([first], rootOffset: first.offset - 1))
    #expect(!isRead([], rootOffset: Self.start + 1))
    #expect(!isRead([first, second], items: 3) && !isRead([first, second], items: 5))
    #expect(!isRead([Self.block(1, at: 12_300, items: 0)]))
    #expect(isRead([Self.block(1, at: 12_300, length: 410, items: 10)]))
    #expect(!isRead([Self.block(1, at: 12_300, length: 409, items: 10)]))
    #expect(isRead([Self.block(1, at: 12_300, length: 41, items: 1)]))
    #expect(!isRead([Self.block(1, at: 12_300, length: 40, items: 1)]))
    let longest = (1 << 20) + 40
    #expect(isRead([Self.block(1, at: 12_300, length: longest)]))
    #expect(!isRead([Self.block(1, at: 12_300, length: longest + 1)]))
  }

  @Test func aRootHasTheLengthOfItsBlocks() {
    var index = BaseIndex(sequence: 4, settings: BaseIndex.Settings(history: .standard))
    index.blocks = [Self.block(1, at: 12_288)]
    index.itemCount = 2
    let bytes = index.bytes
    let root = index.blocks[0].end
    for changed in [bytes + [0], Array(bytes.dropLast())] {
      #expect(
        !reads { () throws(SecretError) in
          try BaseIndex(parsing: changed, start: Self.start, rootOffset: root)
        })
    }
    // The number of blocks, and the reserved bytes after it.
    for offset in [16, 20, 23] {
      var changed = bytes
      changed[offset] += 1
      #expect(
        !reads { () throws(SecretError) in
          try BaseIndex(parsing: changed, start: Self.start, rootOffset: root)
        },
        "\(offset)")
    }
  }

  @Test func aLineageIsASealOfOneToSixtyFourKeys() {
    for (keys, rest, isOne) in [
      (1, 0, true), (64, 0, true), (0, 0, false), (65, 0, false), (1, 1, false), (0, 31, false),
      (2, 31, false),
    ] {
      let lineage = [UInt8](repeating: 1, count: 40 + 32 * keys + rest)
      #expect(isRead([], lineage: lineage) == isOne, "\(keys) \(rest)")
    }
  }

  @Test func theNewestBlockForAnIdIsFound() {
    var index = BaseIndex(sequence: 1, settings: BaseIndex.Settings(history: .standard))
    index.blocks = [2, 4, 4, 6].map { Self.block($0, at: 0) }
    #expect((1...7).map { index.block(for: Self.id($0)) } == [nil, 0, 0, 2, 2, 3, 3])
    #expect([Int]().partitioningIndex { $0 > 0 } == 0)
    for count in 1...9 {
      for bound in 0...count {
        #expect(Array(0..<count).partitioningIndex { $0 >= bound } == bound)
      }
    }
  }

  // MARK: Blocks

  private static func put(_ id: Int, _ sequence: Int) throws -> Record {
    try Record(
      id: Self.id(id), sequence: sequence, valueTag: .zero,
      item: SecretItem(identifier: identifier("a"), metadata: SecretMetadata()))
  }

  private func isRead(
    _ entries: [BlockEntry], first: Record? = nil, items: Int? = nil, end: Int? = nil, newest: Int = 9
  ) throws -> Bool {
    var bytes: [UInt8] = []
    for entry in entries { entry.append(to: &bytes) }
    let first = try #require(first ?? entries.first?.record)
    let block = BaseIndex.Block(
      first: VersionPosition(first), offset: end ?? entries.reduce(1000) { $0 + $1.valueLength },
      length: 4000,
      itemCount: items ?? entries.count, tag: .zero)
    return reads { () throws(SecretError) in
      try BlockEntry.parse(bytes, block: block, start: 1000, maximumSequence: newest)
    }
  }

  @Test func theEntriesOfABlockAscendAndFillTheirPlace() throws {
    func entry(_ record: Record, at offset: Int, _ length: Int = 72) -> BlockEntry {
      BlockEntry(record: record, valueOffset: offset, valueLength: length)
    }
    let (one, two, three) = (try Self.put(1, 5), try Self.put(1, 6), try Self.put(2, 1))
    let removal = try Record(removing: identifier("a"), id: Self.id(1), sequence: 6, time: .distantPast)
    let whole = [entry(one, at: 1000), entry(two, at: 1072), entry(three, at: 1144)]
    #expect(try isRead(whole))
    #expect(try isRead([entry(one, at: 1000), entry(removal, at: 1072, 0)]))
    #expect(try !isRead([entry(two, at: 1000), entry(one, at: 1072)]))
    #expect(try !isRead([entry(three, at: 1000), entry(one, at: 1072)]))
    #expect(try !isRead([entry(one, at: 1000), entry(one, at: 1072)]))
    #expect(try !isRead(whole, first: two) && !isRead(whole, first: three))
    #expect(try isRead(whole, newest: 6) && !isRead(whole, newest: 5))
    #expect(try !isRead(whole, items: 2) && !isRead(whole, items: 4))
    #expect(try !isRead(whole, end: 1000 + 3 * 72 - 1) && !isRead(whole, end: 1000 + 3 * 72 + 1))
    #expect(try !isRead([entry(one, at: 999)]) && !isRead([entry(one, at: 1001)]))
    #expect(try !isRead([entry(one, at: 1000, 0)]) && !isRead([entry(one, at: 1000, 73)]))
    #expect(VersionPosition(one) < VersionPosition(two) && VersionPosition(two) < VersionPosition(three))
    #expect(
      !(VersionPosition(three) < VersionPosition(one)) && !(VersionPosition(one) < VersionPosition(one)))
  }

  // MARK: Records

  /// A put as any writer can encode it.
  private struct Put {
    var kind: UInt8 = 1
    var service = "s", account = "a"
    var fields: [TaggedField] = []

    var isRead: Bool {
      let bytes = encode(
        kind, FormatStructureTests.id(1), 1, 0 as Int64, Text(service), Text(account), Bytes16.zero,
        0 as Int64, TaggedFields(fields))
      var reader = ByteReader(bytes, part: "a record")
      return reads { () throws(SecretError) in
        _ = try Record(parsing: &reader)
        try reader.expectEnd()
      }
    }
  }

  @Test func theNamesOfARecordAreBounded() {
    #expect(Put().isRead && !Put(kind: 0).isRead && !Put(kind: 3).isRead)
    for (length, isOne) in [(0, false), (1, true), (1024, true), (1025, false)] {
      let name = String(repeating: "n", count: length)
      #expect(Put(service: name).isRead == isOne && Put(account: name).isRead == isOne, "\(length)")
    }
    #expect(!Put(service: "a\0").isRead && !Put(account: "\0a").isRead)
  }

  @Test func theMetadataOfARecordIsBounded() {
    func isRead(_ type: UInt16, _ content: [UInt8]) -> Bool {
      Put(fields: [TaggedField(type, content)]).isRead
    }
    func text(_ length: Int) -> String { String(repeating: "t", count: length) }
    #expect(isRead(1, []) && isRead(1, Array(text(1024).utf8)) && !isRead(1, Array(text(1025).utf8)))
    #expect(!isRead(1, [0x61, 0, 0x61]))
    #expect(
      isRead(2, encode(0 as Int64)) && !isRead(2, encode(0 as UInt32)) && !isRead(2, encode(0, 0 as UInt8)))
    func attributes(_ pairs: [(String, String)]) -> Bool {
      isRead(3, pairs.flatMap { encode(Text($0), Text($1)) })
    }
    #expect(!attributes([]) && attributes([("n", "")]) && !attributes([("", "v")]))
    #expect(attributes([(text(128), text(1024))]))
    #expect(!attributes([(text(129), "")]) && !attributes([("n", text(1025))]))
    #expect(!attributes([("n\0", "v")]) && !attributes([("n", "v\0")]))
    #expect(attributes([("a", ""), ("b", "")]))
    #expect(!attributes([("b", ""), ("a", "")]) && !attributes([("a", ""), ("a", "")]))
    for (count, isOne) in [(32, true), (33, false)] {
      #expect(attributes((0..<count).map { ("\($0 + 10)", "v") }) == isOne)
    }
  }

  // MARK: Headers and key slots

  private func slot(_ digit: Int, label: String = "") throws -> KeySlot {
    let header = KeySlot.header(
      id: Self.id(digit), parameters: KeyParameters(salt: [UInt8](repeating: 1, count: 16)), created: 5,
      label: label)
    return try KeySlot(
      header: header, commitment: [UInt8](repeating: 2, count: 32),
      wrappedKey: [UInt8](repeating: 3, count: 72))
  }

  private func header(_ slots: [KeySlot]) -> Header {
    var header = Header(vaultID: Self.id(1), slots: slots)
    header.fileID = Self.id(2)
    header.masterCommitment = [UInt8](repeating: 4, count: 32)
    header.mac = [UInt8](repeating: 5, count: 32)
    return header
  }

  @Test func aHeaderHasOneToSixteenSlotsWithIdsOfTheirOwn() throws {
    for (count, isOne) in [(0, false), (1, true), (16, true), (17, false)] {
      let bytes = header(try (0..<count).map { try slot($0) }).bytes
      #expect(bytes.count % 4096 == 0)
      #expect(reads { () throws(SecretError) in try Header(parsing: bytes) } == isOne, "\(count)")
    }
    let same = header([try slot(1), try slot(2), try slot(1)]).bytes
    #expect(!reads { () throws(SecretError) in try Header(parsing: same) })
  }

  @Test func aHeaderIsReadToItsLastByte() throws {
    let bytes = header([try slot(1, label: "label")]).bytes
    let parsed = try Header(parsing: bytes)
    #expect(parsed.bytes == bytes && parsed.slots.map(\.label) == ["label"] && parsed.slots[0].created == 5)
    #expect(
      !reads { () throws(SecretError) in try Header(parsing: bytes + [UInt8](repeating: 0, count: 4096)) })
    #expect(!reads { () throws(SecretError) in try Header(parsing: Array(bytes.dropLast())) })
    // The magic number, the major version, an incompatible bit, the reserved bytes, and the padding.
    for offset in [0, 7, 8, 9, 12, 15, 61, 63, parsed.authenticatedBytes.count + 32, bytes.count - 1] {
      var changed = bytes
      changed[offset] ^= 1
      #expect(!reads { () throws(SecretError) in try Header(parsing: changed) }, "\(offset)")
    }
    // A length that is one off, either way.
    for change in [1, -1] {
      var changed = bytes
      changed[24] = UInt8(Int(changed[24]) + change)
      #expect(!reads { () throws(SecretError) in try Header(parsing: changed) }, "\(change)")
    }
    for (length, padded) in [(1, 4096), (4096, 4096), (4097, 8192)] {
      #expect(Header.paddedLength(length) == padded)
    }
  }

  @Test func theLengthOfAHeaderIsBounded() throws {
    let bytes = header([try slot(1)]).bytes
    for (length, isOne) in [(127, false), (128, true), (65_536, true), (65_537, false)] as [(UInt32, Bool)] {
      let changed = bytes[..<24] + encode(length) + bytes[28...]
      #expect(
        reads { () throws(SecretError) in try Header.length(ofHeaderBeginning: Array(changed)) } == isOne,
        "\(length)")
    }
  }

  @Test func aKeySlotHasALabelOfAtMostSixtyFourBytesAndNoRest() throws {
    #expect(try slot(1, label: String(repeating: "a", count: 64)).label.utf8.count == 64)
    for label in [String(repeating: "a", count: 65), "a\0b"] {
      #expect(throws: SecretError.self) { _ = try slot(1, label: label) }
    }
    let bytes = try slot(1).bytes
    #expect(reads { () throws(SecretError) in try KeySlot(parsing: bytes, from: 0, to: nil) })
    #expect(!reads { () throws(SecretError) in try KeySlot(parsing: bytes, from: 0, to: bytes.count - 1) })
    for (length, isOne) in [(3, false), (bytes.count - 1, false), (bytes.count + 1, false)] {
      var changed = bytes + [0]
      (changed[2], changed[3]) = (UInt8(length & 0xFF), UInt8(length >> 8))
      #expect(
        reads { () throws(SecretError) in try KeySlot(parsing: changed, from: 0, to: nil) } == isOne,
        "\(length)")
    }
    // Another kind, or another version of a kind, is kept and opens nothing.
    for offset in [0, 1] {
      var changed = bytes
      changed[offset] = 9
      let unknown = try KeySlot(parsing: changed, from: 0, to: nil)
      #expect(!unknown.isKnown && unknown.bytes == changed)
    }
    for (passes, memory, isOne) in [(1, 8, true), (0, 8, false), (1, 7, false)] as [(UInt32, UInt32, Bool)] {
      let header = KeySlot.header(
        id: Self.id(1),
        parameters: PassphraseParameters(
          passes: passes, memory: memory, salt: [UInt8](repeating: 1, count: 16)),
        created: 5, label: "")
      #expect(
        reads { () throws(SecretError) in
          try KeySlot(
            header: header, commitment: [UInt8](repeating: 2, count: 32),
            wrappedKey: [UInt8](repeating: 3, count: 72))
        } == isOne)
    }
  }
}
