import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import FoundationEssentials
import Testing

/// Whether a parser accepts what `body` gives it.
func reads<R>(_ body: () throws(SecretError) -> R) -> Bool {
  thrown { () throws(SecretError) in _ = try body() } == nil
}

/// Each bound of the parsers, on both sides. The vectors show that a file is refused; these tests show by which check.
@Suite struct FormatBoundaryTests {
  private func reader(_ bytes: [UInt8], from start: Int = 0, to end: Int? = nil) -> ByteReader {
    ByteReader(bytes, from: start, to: end, part: "a part")
  }

  // MARK: Fields

  @Test func aReaderStaysWithinItsBytes() throws {
    var whole = reader([1, 2, 3, 4], from: 1, to: 3)
    #expect(!reads { () throws(SecretError) in try whole.range(3) })
    #expect(!reads { () throws(SecretError) in try whole.range(-1) })
    #expect(try whole.range(0) == 1..<1)
    #expect(!whole.isAtEnd && !reads { () throws(SecretError) in try whole.expectEnd() })
    #expect(try whole.array(2) == [2, 3])
    #expect(whole.isAtEnd && whole.position == 3)
    #expect(reads { () throws(SecretError) in try whole.expectEnd() })
    #expect(!reads { () throws(SecretError) in try whole.u8() })
    var short = reader([1, 2, 3, 4, 5, 6, 7])
    #expect(!reads { () throws(SecretError) in try short.i64() })
    #expect(!reads { () throws(SecretError) in try short.bytes16() })
    #expect(try short.u32() == 0x0403_0201)
    #expect(try short.u16() == 0x0605)
    #expect(try short.rest() == 6..<7)
  }

  @Test func aNumberIsBelowTheLimit() throws {
    for (value, isRead) in [
      (0, true), (UInt64(Layout.numberLimit) - 1, true), (UInt64(Layout.numberLimit), false), (.max, false),
    ] {
      var bytes = reader(encode(value))
      #expect(reads { () throws(SecretError) in try bytes.number() } == isRead, "\(value)")
    }
    #expect(Layout.numberLimit == 1 << 62)
  }

  @Test func reservedBytesAreZero() {
    for (bytes, isRead) in [([0, 0, 0], true), ([1, 0, 0], false), ([0, 0, 1], false)] as [([UInt8], Bool)] {
      var reserved = reader(bytes)
      #expect(reads { () throws(SecretError) in try reserved.zeros(3) } == isRead)
    }
  }

  @Test func aTextHasALengthWithinItsBoundsAndNoNUL() throws {
    for (text, isRead) in [("", false), ("a", true), ("abc", true), ("abcd", false), ("a\0", false)] {
      var bytes = reader(sized(text))
      #expect(reads { () throws(SecretError) in try bytes.text(1...3) } == isRead, "\(text)")
    }
    for text in [[0xFF, 0xFE], [0xED, 0xA0, 0x80], [0xC0, 0x80]] as [[UInt8]] {
      var bytes = reader(encode(UInt16(text.count), text))
      #expect(!reads { () throws(SecretError) in try bytes.text(1...3) }, "\(text)")
    }
  }

  @Test func fieldsAscendAndCriticalOnesAreKnown() throws {
    func fields(_ types: [UInt16]) throws(SecretError) -> [UInt16] {
      var bytes = reader(sized(types.map { TaggedField($0, [7]) }))
      var known: [UInt16] = []
      let others = try bytes.taggedFields(2...3) { type, content throws(SecretError) in
        known.append(type)
        #expect(try content.u8() == 7)
      }
      return known + others.map(\.type)
    }
    #expect(try fields([1, 2, 3, 4, 0x7FFF]) == [2, 3, 1, 4, 0x7FFF])
    for types in [[0], [2, 2], [3, 2], [4, 1]] as [[UInt16]] {
      #expect(!reads { () throws(SecretError) in try fields(types) }, "\(types)")
    }
    let critical = thrown { () throws(SecretError) in _ = try fields([0x8000]) }
    #expect(critical?.code == .unsupportedVersion)
    // The reader knows no field here, as in a remove.
    for (type, isRead) in [(1, true), (0x7FFF, true), (0x8000, false)] as [(UInt16, Bool)] {
      var bytes = reader(sized([TaggedField(type, [7])]))
      var found: [UInt16]?
      let error = thrown { () throws(SecretError) in
        found = try bytes.taggedFields(2...3) { _, _ in }.map(\.type)
      }
      #expect(found == (isRead ? [type] : nil))
      #expect(error?.code == (isRead ? nil : .unsupportedVersion))
    }
    // A known field with unread bytes is refused.
    var rest = reader(sized([TaggedField(2, [7, 7])]))
    #expect(
      !reads { () throws(SecretError) in
        try rest.taggedFields(2...3) { _, content throws(SecretError) in _ = try content.u8() }
      })
  }

  /// The fields of a put mean nothing in a remove.
  @Test func aRemoveKnowsOnlyThatItKeepsNothing() throws {
    let remove = try Record(removing: identifier("a"), id: .zero, sequence: 2, time: .distantPast)
    #expect(remove.bytes.suffix(4) == [0, 0, 0, 0])
    func parsed(_ field: TaggedField) throws -> Record {
      let bytes = remove.bytes.dropLast(4) + sized([field])
      var parsed = reader(Array(bytes))
      let record = try Record(id: .zero, sequence: 2, parsing: &parsed)
      #expect(record.bytes == Array(bytes))
      return record
    }
    for type in 1...6 as ClosedRange<UInt16> { #expect(try !parsed(TaggedField(type, [0])).keepsNothing) }
    #expect(try parsed(TaggedField(7, [])).keepsNothing && !parsed(TaggedField(8, [])).keepsNothing)
    #expect(throws: SecretError.self) { try parsed(TaggedField(7, [0])) }
  }

  // MARK: Hashes

  /// An empty buffer may have no address.
  @Test func noBytesHaveAHash() {
    // BLAKE2b-256 of no bytes, as Python's hashlib computes it.
    let hash = BLAKE2b.hash([UInt8]().span, count: 32)
    #expect(hash.prefix(8) == [0x0E, 0x57, 0x51, 0xC0, 0x26, 0xE5, 0x43, 0xB2])
  }

  // MARK: Texts of ids

  @Test func anIdIsThirtyTwoLowerCaseDigits() throws {
    let id = Bytes16(tagOf: [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0, 0, 0, 0, 0, 0, 0, 0xFF])
    #expect(id.hex == "0123456789abcdef00000000000000ff")
    #expect(Bytes16.zero.hex == String(repeating: "0", count: 32))
  }

  @Test func idsAreOrderedByTheirBytes() throws {
    let ids = [0, 1, 0xFF].flatMap { first in
      [0, 2, 0xFF].map { Bytes16(tagOf: [first] + [UInt8](repeating: 0, count: 14) + [$0]) }
    }
    #expect(ids.count == 9)
    for (left, right) in zip(ids, ids.dropFirst()) {
      #expect(left < right && !(right < left) && left != right)
    }
    for (index, id) in ids.enumerated() {
      #expect(!(id < id))
      #expect(
        encode(id).map { String($0, radix: 16) }.count == 16 && encode(id).last == encode(ids[index % 3]).last
      )
    }
  }

  // MARK: Padding and lengths

  @Test func paddingHasOneSpelling() {
    func unpadded(_ bytes: [UInt8]) -> Int? { bytes.withUnsafeBytes { Padding.unpaddedCount($0) } }
    for count in [0, 1, 30, 31, 32, 33, 63, 64] {
      let padded = Padding.pad([UInt8](repeating: 5, count: count))
      #expect(padded.count == (count / 32 + 1) * 32)
      #expect(unpadded(padded) == count)
      #expect(unpadded(padded + [UInt8](repeating: 0, count: 32)) == nil)
      #expect(unpadded(Array(padded.dropLast(32))) == nil)
    }
    #expect(unpadded([0x81] + [UInt8](repeating: 0, count: 31)) == nil)
    #expect(unpadded([UInt8](repeating: 0, count: 32)) == nil)
    #expect(unpadded([]) == nil)
  }

  @Test func aSealedValueHasAWholeNumberOfUnits() {
    let longest = 40 + 16 * 1024 * 1024 + 32
    for (length, isOne) in [
      (0, false), (40, false), (41, false), (71, false), (72, true), (73, false), (104, true),
      (longest, true),
      (longest + 32, false), (8, false),
    ] {
      #expect(Layout.isSealedValueLength(length) == isOne, "\(length)")
    }
  }

  /// The part of a frame that a reader needs in order to skip it is read without the record.
  @Test func theHeadOfAFrameIsBounded() throws {
    let put = try Record(
      id: .zero, sequence: 1, sealedValue: [UInt8](repeating: 0, count: 72),
      item: SecretItem(identifier: identifier("a"), metadata: SecretMetadata())
    ).frame
    let remove = try Record(removing: identifier("a"), id: .zero, sequence: 2, time: .distantPast).frame
    func head(_ frame: [UInt8]) throws(SecretError) -> Record.Head { try Record.Head(frame: frame.span) }
    #expect(try head(put).valueLength == 72 && head(put).sequence == 1)
    #expect(try head(remove).valueLength == 0 && head(remove).sequence == 2)
    for (length, isRead) in [(72, true), (104, true), (0, false), (71, false), (73, false)] {
      let changed = put[..<41] + encode(UInt32(length)) + put[45...]
      #expect(reads { () throws(SecretError) in try head(Array(changed)) } == isRead, "\(length)")
    }
    for (frame, shortest) in [(put, 24 + 37 + 1), (remove, 24 + 1)] {
      #expect(reads { () throws(SecretError) in try head(Array(frame[..<shortest])) })
      #expect(!reads { () throws(SecretError) in try head(Array(frame[..<(shortest - 1)])) })
      let beyond = frame[..<16] + encode(Layout.numberLimit) + frame[24...]
      #expect(!reads { () throws(SecretError) in try head(Array(beyond)) })
      #expect(!reads { () throws(SecretError) in try Record(frame: frame + [0]) })
    }
  }

  // MARK: Commit slots

  private struct State {
    var sequence = 5, end = 24_000, baseEnd = 18_000, rootLength = 200
    var tailTag = Bytes16.zero, rootTag = Bytes16.zero
    var reserved = [UInt8](repeating: 0, count: 4), rest = [UInt8](repeating: 0, count: 4096 - 40 - 64)
    var bytes: [UInt8] {
      encode(sequence, end, tailTag, baseEnd, UInt32(rootLength), reserved, rootTag, rest)
    }
  }

  @Test func aCommitStateDoesNotContradictItself() throws {
    let tag = Bytes16(tagOf: [UInt8](repeating: 0x11, count: 16))
    func isRead(_ change: (inout State) -> Void) -> Bool {
      var state = State()
      change(&state)
      return reads { () throws(SecretError) in try CommitState(parsing: state.bytes, headerLength: 4096) }
    }
    let state = try CommitState(parsing: State().bytes, headerLength: 4096)
    #expect(state.bytes == State().bytes && state.rootOffset == 17_800)
    #expect(isRead { $0.end = $0.baseEnd } && !isRead { $0.end = $0.baseEnd - 1 })
    #expect(isRead { $0.tailTag = tag })
    #expect(isRead { $0.sequence = 1 } && !isRead { $0.sequence = 0 })
    #expect(!isRead { ($0.end, $0.tailTag) = ($0.baseEnd, tag) })
    func root(at offset: Int, _ length: Int) -> Bool {
      isRead { ($0.rootLength, $0.baseEnd, $0.end) = (length, offset + length, 1 << 40) }
    }
    #expect(root(at: 4 * 4096, 200) && !root(at: 4 * 4096 - 1, 200))
    #expect(root(at: 4 * 4096, 116) && !root(at: 4 * 4096, 115))
    #expect(root(at: 4 * 4096, (1 << 20) + 40) && !root(at: 4 * 4096, (1 << 20) + 41))
    #expect(
      !isRead { $0.reserved[3] = 1 } && !isRead { $0.rest[$0.rest.count - 1] = 1 }
        && !isRead { $0.rest[0] = 1 })
    #expect(!isRead { $0.rest += [0] } && !isRead { $0.rest.removeLast() })
  }

  // MARK: Known-vault records

  @Test func aKnownVaultRecordHasOneSpelling() throws {
    let record = KnownVaultRecord(
      policy: .versioned, vault: .zero, masterCommitment: [UInt8](repeating: 2, count: 32),
      checkpoint: Checkpoint(sequence: 7, tailTag: .zero))
    let mac = [UInt8](repeating: 3, count: 32)
    let bytes = record.hashedBytes(mac: mac)
    #expect(bytes.count == 496)
    let parsed = try KnownVaultRecord.parse(bytes)
    #expect(parsed.0 == record && parsed.mac == mac)
    // The magic number, the policy, the scope, reserved bytes, and the zeros at the end.
    for (offset, value) in [
      (0, 0), (7, 0), (8, 3), (9, 2), (10, 1), (15, 1), (495, 1), (8 + 8 + 16 + 32 + 24 + 32, 1),
    ] {
      var changed = bytes
      changed[offset] = UInt8(value)
      #expect(!reads { () throws(SecretError) in try KnownVaultRecord.parse(changed) }, "\(offset)")
    }
    #expect(!reads { () throws(SecretError) in try KnownVaultRecord.parse(bytes + [0]) })
    #expect(!reads { () throws(SecretError) in try KnownVaultRecord.parse(bytes.dropLast()) })
  }
}
