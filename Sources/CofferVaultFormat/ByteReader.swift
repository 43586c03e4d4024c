package import CofferCore

/// Reads fields from bytes in order, and never past the end.
///
/// The throwing methods throw `.tampered` if the bytes end too early or break a rule of the format.
package struct ByteReader {
  package let bytes: [UInt8]
  /// The offset in `bytes` of the next field.
  package private(set) var position: Int
  private let end: Int
  private let part: String

  /// Reads `bytes` from `start` to `end`. `part` is the name of these bytes in error messages.
  package init(_ bytes: [UInt8], from start: Int = 0, to end: Int? = nil, part: String) {
    self.bytes = bytes
    position = start
    self.end = end ?? bytes.count
    self.part = part
  }

  package var isAtEnd: Bool { position == end }

  package mutating func range(_ count: Int) throws(SecretError) -> Range<Int> {
    guard count >= 0, count <= end - position else { throw failure("is cut short") }
    defer { position += count }
    return position..<position + count
  }

  package mutating func u8() throws(SecretError) -> UInt8 { try integer() }
  package mutating func u16() throws(SecretError) -> UInt16 { try integer() }
  package mutating func u32() throws(SecretError) -> UInt32 { try integer() }
  package mutating func i64() throws(SecretError) -> Int64 { try integer() }

  /// Reads a sequence: a number of 1 or more.
  package mutating func sequence() throws(SecretError) -> Int {
    let value = try number()
    guard value > 0 else { throw failure("has a sequence of 0") }
    return value
  }

  /// Reads an offset or a count: a `u64` below the format's limit, so that sums cannot overflow.
  package mutating func number() throws(SecretError) -> Int {
    let value: UInt64 = try integer()
    guard value < Layout.numberLimit else { throw failure("has a number above the limit") }
    return Int(value)
  }

  package mutating func bytes16() throws(SecretError) -> Bytes16 {
    let range = try range(16)
    return bytes.withUnsafeBytes { Bytes16($0, at: range.lowerBound) }
  }

  package mutating func array(_ count: Int) throws(SecretError) -> [UInt8] { Array(try slice(count)) }

  /// Reads bytes without a copy.
  mutating func slice(_ count: Int) throws(SecretError) -> ArraySlice<UInt8> { bytes[try range(count)] }

  /// Reads reserved bytes, which must be zero.
  package mutating func zeros(_ count: Int) throws(SecretError) {
    guard bytes[try range(count)].allSatisfy({ $0 == 0 }) else { throw failure("has reserved bytes that are not zero") }
  }

  /// Reads a `u16` length within `lengths`, and a text of UTF-8 of that length without a NUL. Returns its range.
  package mutating func text(_ lengths: ClosedRange<Int>) throws(SecretError) -> Range<Int> {
    try text(Int(try u16()), lengths)
  }

  /// Reads a text of `count` bytes of UTF-8, without a NUL. Returns its range.
  private mutating func text(_ count: Int, _ lengths: ClosedRange<Int>) throws(SecretError) -> Range<Int> {
    let range = try range(count)
    guard lengths.contains(count) else { throw failure("has a text of a forbidden length") }
    guard !bytes[range].contains(0) else { throw failure("has a text with a NUL") }
    do { _ = try UTF8Span(validating: bytes.span.extracting(range)) } catch {
      throw failure("has a text that is not UTF-8")
    }
    return range
  }

  /// Reads the label of a key slot, with its length in one byte.
  package mutating func slotLabel() throws(SecretError) -> String {
    bytes.text(in: try text(Int(try u8()), 0...Layout.maximumSlotLabelLength))
  }

  /// Reads a list of fields, and calls `parse` with the type and a reader of the content of each field whose type is in
  /// `known`. Returns the other fields.
  ///
  /// Throws `.unsupportedVersion` if one of the other fields is critical, and what `parse` throws.
  @discardableResult
  package mutating func taggedFields(
    _ known: ClosedRange<UInt16>, _ parse: (UInt16, inout ByteReader) throws(SecretError) -> Void
  ) throws(SecretError) -> [TaggedField] {
    var list = try nested(Int(try u32()))
    var fields: [(type: UInt16, content: ByteReader)] = []
    while !list.isAtEnd {
      let type = try list.u16()
      guard type > fields.last?.type ?? 0 else { throw failure("has fields out of order") }
      fields.append((type, try list.nested(Int(try list.u32()))))
    }
    let others = fields.filter { !known.contains($0.type) }.map { type, content in
      TaggedField(type, Array(content.bytes[content.position..<content.end]))
    }
    if others.contains(where: \.isCritical) {
      throw SecretError(
        .unsupportedVersion, "The vault was written by a later version of Coffer.",
        advice: "Update Coffer to read it.")
    }
    let length = others.reduce(0) { $0 + TaggedField.headLength + $1.content.count }
    guard length <= Layout.maximumUnknownFields else { throw failure("has too many unknown fields") }
    for var field in fields where known.contains(field.type) {
      try parse(field.type, &field.content)
      try field.content.expectEnd()
    }
    return others
  }

  /// A reader of the next `count` bytes, which this reader skips.
  private mutating func nested(_ count: Int) throws(SecretError) -> ByteReader {
    let range = try range(count)
    return ByteReader(bytes, from: range.lowerBound, to: range.upperBound, part: part)
  }

  /// Reads the remaining bytes, a text of at most `maximum` bytes of UTF-8 without a NUL. Returns their range.
  mutating func restOfText(_ maximum: Int) throws(SecretError) -> Range<Int> {
    try text(end - position, 0...maximum)
  }

  /// Reads a state: its sequence and its tag.
  package mutating func checkpoint() throws(SecretError) -> Checkpoint {
    Checkpoint(sequence: try sequence(), tailTag: try bytes16())
  }

  /// Reads checkpoints up to the end, which strictly ascend.
  mutating func checkpoints() throws(SecretError) -> [Checkpoint] {
    var list: [Checkpoint] = []
    while !isAtEnd {
      let next = try checkpoint()
      guard list.last.map({ $0 < next }) ?? true else { throw failure("has changes out of order") }
      list.append(next)
    }
    return list
  }

  /// Reads the remaining bytes. Returns their range.
  package mutating func rest() throws(SecretError) -> Range<Int> { try range(end - position) }

  package func expectEnd() throws(SecretError) {
    guard isAtEnd else { throw failure("has bytes after its end") }
  }

  package func failure(_ what: String) -> SecretError { .tampered("\(part) \(what)") }

  private mutating func integer<I: FixedWidthInteger>() throws(SecretError) -> I {
    let range = try range(MemoryLayout<I>.size)
    return bytes.withUnsafeBytes { $0.integer(at: range.lowerBound) }
  }
}

extension UnsafeRawBufferPointer {
  /// Reads a little-endian integer at `offset`. The caller has checked that the bytes are there.
  package func integer<I: FixedWidthInteger>(at offset: Int) -> I {
    I(littleEndian: loadUnaligned(fromByteOffset: offset, as: I.self))
  }
}

extension [UInt8] {
  /// Decodes the text in `range`, which ``ByteReader`` has found to be UTF-8.
  package func text(in range: Range<Int>) -> String { String(decoding: self[range], as: UTF8.self) }
}

extension SecretError {
  /// An error about data that should be authentic and failed a check. `what` must not contain a value.
  package static func tampered(_ what: String) -> SecretError {
    SecretError(
      .tampered, "The vault is damaged or was tampered with: \(what).",
      advice: "Restore the file from a backup.")
  }
}
