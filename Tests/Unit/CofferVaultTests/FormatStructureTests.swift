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

  private static func entry(_ id: Int, at offset: Int, length: Int = 400, items: Int = 2) -> BaseIndex.Entry {
    BaseIndex.Entry(
      first: VersionPosition(id: Self.id(id), sequence: 1), offset: offset, length: length, itemCount: items,
      tag: .zero)
  }

  private static func root(lineage: [UInt8]? = nil) -> BaseIndex {
    var settings = BaseIndex.Settings(lookupKey: [UInt8](repeating: 6, count: 32), history: .standard)
    settings.lineage = lineage
    return BaseIndex(sequence: 4, settings: settings, recent: BaseIndex.Recent(floor: 4))
  }

  private func isRead(
    _ entries: [BaseIndex.Entry], rootOffset: Int? = nil, recent: BaseIndex.Recent? = nil, lineage: [UInt8]? = nil
  ) -> Bool {
    var index = Self.root(lineage: lineage)
    index.entries = entries
    if let recent { index.recent = recent }
    let bytes = index.bytes
    let root = rootOffset ?? (entries.last?.end ?? Self.start) + index.recent.length
    return reads { () throws(SecretError) in
      let parsed = try BaseIndex(parsing: bytes, start: Self.start, rootOffset: root)
      #expect(parsed.bytes == bytes)
      return parsed
    }
  }

  @Test func theBlocksOfABaseFillItInOrder() {
    let (first, second) = (Self.entry(1, at: 12_300), Self.entry(2, at: 12_800))
    #expect(isRead([]) && isRead([first]) && isRead([first, second]))
    #expect(isRead([Self.entry(1, at: 12_288)]) && !isRead([Self.entry(1, at: 12_287)]))
    #expect(isRead([first, Self.entry(2, at: 12_700)]) && !isRead([first, Self.entry(2, at: 12_699)]))
    #expect(
      !isRead([first, Self.entry(1, at: 12_800)])
        && !isRead([Self.entry(2, at: 12_300), Self.entry(1, at: 12_800)]))
    #expect(!isRead([first], rootOffset: first.end + 1) && !isRead([first], rootOffset: first.end - 1))
    #expect(!isRead([first], rootOffset: first.offset) && !isRead([first], rootOffset: first.offset - 1))
    #expect(!isRead([], rootOffset: Self.start + 1))
    #expect(!isRead([Self.entry(1, at: 12_300, items: 0)]))
    #expect(isRead([Self.entry(1, at: 12_300, length: 41, items: 1)]))
    #expect(!isRead([Self.entry(1, at: 12_300, length: 40, items: 1)]))
    let longest = (1 << 20) + 40
    #expect(isRead([Self.entry(1, at: 12_300, length: longest)]))
    #expect(!isRead([Self.entry(1, at: 12_300, length: longest + 1)]))
  }

  @Test func aRootHasTheLengthOfItsBlocks() {
    var index = Self.root()
    index.entries = [Self.entry(1, at: 12_288)]
    let bytes = index.bytes
    let root = index.entries[0].end
    for changed in [bytes + [0], Array(bytes.dropLast())] {
      #expect(
        !reads { () throws(SecretError) in
          try BaseIndex(parsing: changed, start: Self.start, rootOffset: root)
        })
    }
    // The number of entries.
    var changed = bytes
    changed[76] += 1
    #expect(
      !reads { () throws(SecretError) in
        try BaseIndex(parsing: changed, start: Self.start, rootOffset: root)
      })
  }

  /// The recent changes lie between the last entry and the root.
  @Test func theRecentChangesOfARootFitItsFloor() {
    func isRead(floor: Int, _ length: Int, _ tag: Int = 0) -> Bool {
      self.isRead([], recent: BaseIndex.Recent(floor: floor, length: length, tag: Self.id(tag)))
    }
    #expect(isRead(floor: 4, 0) && !isRead(floor: 3, 0) && !isRead(floor: 5, 0) && !isRead(floor: 4, 0, 1))
    #expect(isRead(floor: 3, 64) && isRead(floor: 1, 64, 1) && !isRead(floor: 0, 64) && !isRead(floor: 4, 64))
    for (length, isOne) in [
      (40, false), (41, false), (63, false), (65, false), (88, true), (40 + 24 * 2048, true),
      (40 + 24 * 2049, false), (24, false),
    ] {
      #expect(isRead(floor: 1, length) == isOne, "\(length)")
    }
    let first = Self.entry(1, at: 12_288)
    let recent = BaseIndex.Recent(floor: 1, length: 64)
    #expect(self.isRead([first], recent: recent))
    #expect(!self.isRead([first], rootOffset: first.end + 63, recent: recent))
    #expect(!self.isRead([first], rootOffset: first.end + 65, recent: recent))
  }

  @Test func recentChangesAscendFromTheFloorToTheRoot() throws {
    var root = Self.root()
    root.recent = BaseIndex.Recent(floor: 2, length: 88)
    func list(_ changes: [(Int, Int)]) -> [Checkpoint]? {
      let bytes = changes.flatMap { encode($0.0, Self.id($0.1)) }
      do throws(SecretError) { return try Checkpoint.list(bytes, before: root) } catch { return nil }
    }
    #expect(
      list([(2, 1), (3, 0)]) == [
        Checkpoint(sequence: 2, tailTag: Self.id(1)), Checkpoint(sequence: 3, tailTag: Self.id(0)),
      ])
    // After a merge, two changes may have the same number.
    #expect(
      list([(3, 1), (3, 2)]) != nil && list([(3, 2), (3, 1)]) == nil && list([(3, 1), (3, 1)]) == nil)
    #expect(
      list([(1, 1), (3, 1)]) == nil && list([(2, 1), (4, 1)]) == nil && list([(3, 1), (2, 1)]) == nil)
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
    let entries = [2, 4, 4, 6].map { Self.entry($0, at: 0) }
    #expect((1...7).map { entries.index(for: Self.id($0)) } == [nil, 0, 0, 2, 2, 3, 3])
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
      id: Self.id(id), sequence: sequence, sealedValue: [UInt8](repeating: 0, count: 72),
      item: SecretItem(identifier: identifier("a"), metadata: SecretMetadata()))
  }

  private func isBlock(
    _ entries: [BlockEntry], first: Record? = nil, items: Int? = nil, end: Int? = nil, newest: Int = 9,
    change: (inout [UInt8]) -> Void = { _ in }
  ) throws -> Bool {
    var writer = BlockWriter()
    entries.forEach { writer.append($0) }
    var bytes = writer.bytes
    change(&bytes)
    let first = try #require(first ?? entries.first?.record)
    let entry = BaseIndex.Entry(
      first: VersionPosition(first), offset: end ?? entries.reduce(1000) { $0 + $1.record.valueLength },
      length: 4000, itemCount: items ?? entries.count, tag: .zero)
    return reads { () throws(SecretError) in
      let items = try Block(bytes, entry: entry, maximumSequence: newest).items(valuesFrom: 1000)
      #expect(items.map { VersionPosition($0.record) } == entries.map { VersionPosition($0.record) })
    }
  }

  @Test func theItemsOfABlockAscendAndFillTheirPlace() throws {
    func entry(_ record: Record, at offset: Int) -> BlockEntry {
      BlockEntry(record: record, valueOffset: offset)
    }
    let (one, two, three) = (try Self.put(1, 5), try Self.put(1, 6), try Self.put(2, 1))
    let removal = try Record(removing: identifier("a"), id: Self.id(1), sequence: 6, time: .distantPast)
    let whole = [entry(one, at: 1000), entry(two, at: 1072), entry(three, at: 1144)]
    #expect(try isBlock(whole))
    #expect(try isBlock([entry(one, at: 1000), entry(removal, at: 0)]))
    #expect(try !isBlock([entry(two, at: 1000), entry(one, at: 1072)]))
    #expect(try !isBlock([entry(three, at: 1000), entry(one, at: 1072)]))
    #expect(try !isBlock([entry(one, at: 1000), entry(one, at: 1072)]))
    #expect(try !isBlock(whole, first: two) && !isBlock(whole, first: three))
    #expect(try isBlock(whole, newest: 6) && !isBlock(whole, newest: 5))
    #expect(try !isBlock(whole, items: 2) && !isBlock(whole, items: 4) && !isBlock(whole, items: 1 << 32))
    #expect(try !isBlock(whole, end: 1000 + 3 * 72 - 1) && !isBlock(whole, end: 1000 + 3 * 72 + 1))
    #expect(try !isBlock([entry(one, at: 999)]) && !isBlock([entry(one, at: 1001)]))
    #expect(VersionPosition(one) < VersionPosition(two) && VersionPosition(two) < VersionPosition(three))
    #expect(
      !(VersionPosition(three) < VersionPosition(one)) && !(VersionPosition(one) < VersionPosition(one)))
  }

  /// A lookup decodes one item of a block, without comparing it with the others.
  @Test func theValueOfOneItemLiesBetweenTheStartAndItsBlock() throws {
    for (offset, isOne) in [(999, false), (1000, true), (1928, true), (1929, false), (5000, false)] {
      let record = try Self.put(1, 5)
      var writer = BlockWriter()
      writer.append(BlockEntry(record: record, valueOffset: offset))
      let entry = BaseIndex.Entry(
        first: VersionPosition(record), offset: 2000, length: 4000, itemCount: 1, tag: .zero)
      let bytes = writer.bytes
      #expect(
        reads { () throws(SecretError) in
          _ = try Block(bytes, entry: entry, maximumSequence: 9).item(0, valuesFrom: 1000)
        } == isOne, "\(offset)")
    }
  }

  @Test func theDirectoryOfABlockNamesItsItemsWithoutAGap() throws {
    let block = [
      BlockEntry(record: try Self.put(1, 5), valueOffset: 1000),
      BlockEntry(record: try Self.put(2, 6), valueOffset: 1072),
    ]
    // In the directory, the entry of each of the two items ends with the item's offset.
    for offset in [24, 28 + 24] {
      for change in [1, 255] as [UInt8] { #expect(try !isBlock(block) { $0[offset] &+= change }) }
    }
    #expect(try !isBlock(block) { $0[16 + 7] = 0x40 })
    #expect(try !isBlock(block) { $0.append(0) } && !isBlock(block) { $0.removeLast() })
  }

  // MARK: Records

  /// A put as any writer can encode it.
  private struct Put {
    var kind: UInt8 = 1
    var service = "s", account = "a"
    var valueLength = 72
    var fields: [TaggedField] = []

    var isRead: Bool {
      let bytes = encode(
        kind, 0 as Int64, 0 as Int64, UInt32(valueLength), Bytes16.zero, sized(service), sized(account),
        sized(fields))
      var reader = ByteReader(bytes, part: "a record")
      return reads { () throws(SecretError) in
        _ = try Record(id: FormatStructureTests.id(1), sequence: 1, parsing: &reader)
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
    #expect(Put(valueLength: 104).isRead && !Put(valueLength: 0).isRead && !Put(valueLength: 73).isRead)
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
    #expect(isRead(4, encode(0 as Int64)) && !isRead(4, encode(0 as UInt32)))
    for type in 5...6 as ClosedRange<UInt16> {
      #expect(isRead(type, encode(1)) && !isRead(type, encode(0)) && !isRead(type, encode(Layout.numberLimit)))
      #expect(!isRead(type, encode(1, 0 as UInt8)))
    }
    for type in 7...8 as ClosedRange<UInt16> { #expect(isRead(type, []) && !isRead(type, [0])) }
    #expect(isRead(9, encode(1, Bytes16.zero)) && !isRead(9, encode(0, Bytes16.zero)) && !isRead(9, encode(1)))
    func attributes(_ pairs: [(String, String)]) -> Bool {
      isRead(3, pairs.flatMap { encode(sized($0), sized($1)) })
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
      id: Self.id(digit), parameters: .key(salt: [UInt8](repeating: 1, count: 16)), created: 5,
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

  @Test func aHeaderHasOneTo240SlotsWithIdsOfTheirOwn() throws {
    for (count, isOne) in [(0, false), (1, true), (240, true), (241, false)] {
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
    // The magic number, the version, an incompatible bit, the reserved bytes, and the padding.
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
    for (length, isOne) in [(127, false), (128, true), (1 << 20, true), ((1 << 20) + 1, false)]
      as [(UInt32, Bool)]
    {
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
    let bytes = Array(try slot(1).bytes)
    #expect(reads { () throws(SecretError) in try KeySlot(parsing: bytes, from: 0, to: nil) })
    #expect(!reads { () throws(SecretError) in try KeySlot(parsing: bytes, from: 0, to: bytes.count - 1) })
    for (length, isOne) in [(3, false), (bytes.count - 1, false), (bytes.count + 1, false)] {
      var changed = bytes + [0]
      (changed[2], changed[3]) = (UInt8(length & 0xFF), UInt8(length >> 8))
      #expect(
        reads { () throws(SecretError) in try KeySlot(parsing: changed, from: 0, to: nil) } == isOne,
        "\(length)")
    }
    // The slots of recipients have other lengths.
    for (parameters, length) in [
      (
        .recipient(.init(repeating: 1, count: 32), share: .init(repeating: 2, count: 32), isHybrid: false),
        197
      ),
      (
        .recipient(.init(repeating: 1, count: 1216), share: .init(repeating: 2, count: 1120), isHybrid: true),
        2469
      ),
    ] as [(KeySlotParameters, Int)] {
      let slot = try KeySlot(
        header: KeySlot.header(id: Self.id(1), parameters: parameters, created: 5, label: ""),
        commitment: [UInt8](repeating: 2, count: 32), wrappedKey: [UInt8](repeating: 3, count: 72))
      #expect(slot.bytes.count == length && slot.parameters?.bytes == parameters.bytes)
      #expect(slot.parameters?.recipient == parameters.recipient)
      let bytes = Array(slot.bytes)
      #expect(!reads { () throws(SecretError) in try KeySlot(parsing: bytes, from: 0, to: length - 1) })
    }
    // A slot of an unknown kind or version is kept, and opens nothing.
    for offset in [0, 1] {
      var changed = bytes
      changed[offset] = 9
      let unknown = try KeySlot(parsing: changed, from: 0, to: nil)
      #expect(!unknown.isKnown && Array(unknown.bytes) == changed)
    }
    for (passes, memory, isOne) in [(1, 8, true), (0, 8, false), (1, 7, false)] as [(UInt32, UInt32, Bool)] {
      let header = KeySlot.header(
        id: Self.id(1),
        parameters: .passphrase(
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
