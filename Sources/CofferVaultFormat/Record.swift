package import CofferCore
package import FoundationEssentials

/// One version of a secret, without its value. A put is a stored value. A remove says that the secret was removed.
///
/// A record keeps its encoded bytes, so that a rewrite copies them, and decodes texts only on request.
package struct Record: Sendable {
  package enum Kind: UInt8, Sendable {
    case put = 1
    case remove = 2
  }
  package let kind: Kind
  package let id: Bytes16
  package let sequence: Int
  /// When the version was stored, or the secret removed: milliseconds since 1970.
  package let time: Int64
  /// The length of the sealed value; 0 in a remove.
  package let valueLength: Int
  /// The tag of the sealed value, which ties the value to a put; zero in a remove.
  package private(set) var valueTag: Bytes16
  /// If `true`, nothing that the secret had before this change is shown, restored or kept.
  package let keepsNothing: Bool
  /// Whether the next change keeps nothing as well, if it is told nothing.
  package let keepsNoHistory: Bool
  /// The sequence of the put that this one, with another value, lost to in a merge.
  package let conflict: Int?
  /// The sequence of the put that has the value of this one, which was stored on the other side of a merge.
  package let twin: Int?
  /// The sequence that the change had first, and the tag of the lowest state that had it, if a merge has moved it.
  package let origin: Checkpoint?
  private let unknownFields: [TaggedField]
  /// The bytes of the record in a frame or a block: those after the lookup id and the sequence, without padding.
  package private(set) var bytes: [UInt8]

  private let created: Int64
  private let expires: Int64?
  /// When the value was first stored, if not at ``time``.
  package let since: Int64?
  // The offset of the list of fields in `bytes`, and ranges there.
  private let fieldsOffset: Int
  private let service: Range<Int>
  private let account: Range<Int>
  private let label: Range<Int>?
  private let attributes: [(name: Range<Int>, value: Range<Int>)]

  /// The types of the fields of a put. A remove has only the last three.
  private enum FieldType {
    static let label: UInt16 = 1
    static let expiry: UInt16 = 2
    static let attributes: UInt16 = 3
    static let since: UInt16 = 4
    static let conflict: UInt16 = 5
    static let twin: UInt16 = 6
    static let keepsNothing: UInt16 = 7
    static let keptNothing: UInt16 = 8
    static let origin: UInt16 = 9

    static func known(_ kind: Kind) -> ClosedRange<UInt16> { (kind == .put ? label : keepsNothing)...origin }
    /// Those that merges write.
    static let ofMerges = conflict...origin
  }

  /// Parses a record whose kind is next in `reader`, and leaves `reader` at its end. Throws `.tampered`, and
  /// `.unsupportedVersion` for an unknown critical field.
  package init(id: Bytes16, sequence: Int, parsing reader: inout ByteReader) throws(SecretError) {
    (self.id, self.sequence) = (id, sequence)
    let start = reader.position
    guard let kind = Kind(rawValue: try reader.u8()) else { throw reader.failure("has an unknown kind") }
    self.kind = kind
    time = try reader.i64()
    created = kind == .put ? try reader.i64() : 0
    valueLength = kind == .put ? Int(try reader.u32()) : 0
    valueTag = kind == .put ? try reader.bytes16() : .zero
    guard kind == .remove || Layout.isSealedValueLength(valueLength) else {
      throw reader.failure("has a value of a wrong length")
    }
    let service = try reader.text(1...SecretIdentifier.maximumLength)
    let account = try reader.text(1...SecretIdentifier.maximumLength)
    var (label, expires, since): (Range<Int>?, Int64?, Int64?)
    var (conflict, twin, origin): (Int?, Int?, Checkpoint?)
    var (keepsNothing, keptNothing) = (false, false)
    var attributes: [(name: Range<Int>, value: Range<Int>)] = []
    fieldsOffset = reader.position - start
    unknownFields = try reader.taggedFields(FieldType.known(kind)) { type, field throws(SecretError) in
      switch type {
      case FieldType.label: label = try field.restOfText(SecretMetadata.maximumLabelLength)
      case FieldType.expiry: expires = try field.i64()
      case FieldType.attributes: attributes = try Self.attributes(&field)
      case FieldType.since: since = try field.i64()
      case FieldType.conflict: conflict = try field.sequence()
      case FieldType.twin: twin = try field.sequence()
      case FieldType.keepsNothing: keepsNothing = true
      case FieldType.keptNothing: keptNothing = true
      default: origin = try field.checkpoint()
      }
    }
    (self.keepsNothing, keepsNoHistory) = (keepsNothing, keepsNothing || keptNothing)
    (self.conflict, self.twin, self.origin, self.since) = (conflict, twin, origin, since)
    func fromStart(_ range: Range<Int>) -> Range<Int> {
      range.lowerBound - start..<range.upperBound - start
    }
    bytes = Array(reader.bytes[start..<reader.position])
    (self.service, self.account, self.label) = (fromStart(service), fromStart(account), label.map(fromStart))
    self.expires = expires
    self.attributes = attributes.map { (fromStart($0.name), fromStart($0.value)) }
  }

  private static func attributes(
    _ field: inout ByteReader
  ) throws(SecretError) -> [(name: Range<Int>, value: Range<Int>)] {
    var attributes: [(name: Range<Int>, value: Range<Int>)] = []
    repeat {
      let name = try field.text(1...SecretMetadata.maximumAttributeNameLength)
      let value = try field.text(0...SecretMetadata.maximumAttributeValueLength)
      guard attributes.last.map({ field.bytes[$0.name].lexicographicallyPrecedes(field.bytes[name]) }) ?? true
      else { throw field.failure("has attributes out of order") }
      attributes.append((name, value))
    } while !field.isAtEnd
    guard attributes.count <= SecretMetadata.maximumAttributeCount else {
      throw field.failure("has too many attributes")
    }
    return attributes
  }

  /// Makes the record of a put. The caller has validated `item`. `former` is the record of the present value, if there
  /// is one, or that of the same value under another name. Throws `.tampered` at a limit of the format.
  package init(
    id: Bytes16, sequence: Int, sealedValue: [UInt8], item: SecretItem, keepsNothing: Bool = false,
    after former: Record? = nil
  ) throws(SecretError) {
    let metadata = item.metadata
    var fields: [TaggedField] = []
    if let label = metadata.label { fields.append(TaggedField(FieldType.label, Array(label.utf8))) }
    if let expires = metadata.expires {
      fields.append(TaggedField(FieldType.expiry, encode(Timestamp.milliseconds(expires))))
    }
    if !metadata.attributes.isEmpty {
      let sorted = metadata.attributes.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      fields.append(TaggedField(FieldType.attributes, sorted.flatMap { encode(sized($0.key), sized($0.value)) }))
    }
    if keepsNothing { fields.append(TaggedField(FieldType.keepsNothing, [])) }
    if let former, former.id == id { fields += former.unknownFields.filter(\.isTakenOver) }
    if let former, former.id != id {
      let since = former.since ?? former.time
      if since != Timestamp.milliseconds(metadata.modified) {
        fields.append(TaggedField(FieldType.since, encode(since)))
      }
      fields += former.unknownFields.filter { !$0.isLeftOut }
    }
    fields.sort { $0.type < $1.type }
    let names = item.identifier
    try self.init(
      id: id, sequence: sequence,
      parsing: encode(
        Kind.put.rawValue, Timestamp.milliseconds(metadata.modified),
        Timestamp.milliseconds(metadata.created),
        UInt32(sealedValue.count), Bytes16(tagOf: sealedValue), sized(names.service), sized(names.account),
        sized(fields)))
  }

  /// Makes the record of a remove. Throws `.tampered` at a limit of the format.
  package init(
    removing identifier: SecretIdentifier, id: Bytes16, sequence: Int, time: Date, keepsNothing: Bool = false
  ) throws(SecretError) {
    try self.init(
      id: id, sequence: sequence,
      parsing: encode(
        Kind.remove.rawValue, Timestamp.milliseconds(time), sized(identifier.service),
        sized(identifier.account),
        sized(keepsNothing ? [TaggedField(FieldType.keepsNothing, [])] : [])))
  }

  /// Parses a record that is all of `bytes`.
  private init(id: Bytes16, sequence: Int, parsing bytes: [UInt8]) throws(SecretError) {
    var reader = ByteReader(bytes, part: "a record")
    try self.init(id: id, sequence: sequence, parsing: &reader)
    try reader.expectEnd()
  }

  /// The offsets in ``bytes`` of a put.
  private static let (lengthOffset, tagOffset, tagEnd) = (17, 21, 37)

  /// Returns the record of a put with another tag: that of its value when sealed under another master key.
  package func with(valueTag: Bytes16) -> Record {
    var record = self
    record.valueTag = valueTag
    record.bytes.replaceSubrange(Self.tagOffset..<Self.tagEnd, with: encode(valueTag))
    return record
  }

  /// Returns the record without the fields that a rewrite leaves out.
  package func rewritten() throws(SecretError) -> Record {
    guard unknownFields.contains(where: \.isLeftOut) else { return self }
    return try with(fields().filter { !$0.isLeftOut })
  }

  /// Returns the record of the same change as a merge writes it: see ``conflict`` and ``twin``. If it `hasKeptNothing`,
  /// what its field *keeps nothing* was to drop is dropped. `time` takes the place of its own, if it is given.
  package func merged(
    _ sequence: Int, conflict: Int?, twin: Int?, hasKeptNothing: Bool, origin: Checkpoint?, time: Int64? = nil
  ) throws(SecretError) -> Record {
    var fields = try fields().filter { !FieldType.ofMerges.contains($0.type) && !$0.isLeftOut }
    if let conflict { fields.append(TaggedField(FieldType.conflict, encode(conflict))) }
    if let twin { fields.append(TaggedField(FieldType.twin, encode(twin))) }
    if keepsNoHistory {
      let isKept = hasKeptNothing || !keepsNothing
      fields.append(TaggedField(isKept ? FieldType.keptNothing : FieldType.keepsNothing, []))
    }
    if let origin { fields.append(TaggedField(FieldType.origin, encode(origin.sequence, origin.tailTag))) }
    return try with(fields.sorted { $0.type < $1.type }, sequence: sequence, time: time)
  }

  /// Whether this value was present on one side of a merge, and `newest`, which is the newest record, on the other.
  package func stands(beside newest: Record) -> Bool {
    newest.kind == .put && (conflict == newest.sequence || twin == newest.sequence)
  }

  /// Whether both are the same record.
  package func hasBytes(of other: Record) -> Bool { sequence == other.sequence && bytes == other.bytes }

  private func fields() throws(SecretError) -> [TaggedField] {
    var fields = unknownFields
    var reader = ByteReader(bytes, from: fieldsOffset, part: "a record")
    try reader.taggedFields(FieldType.known(kind)) { type, field throws(SecretError) in
      fields.append(TaggedField(type, Array(field.bytes[try field.rest()])))
    }
    return fields.sorted { $0.type < $1.type }
  }

  private func with(_ fields: [TaggedField], sequence: Int? = nil, time: Int64? = nil) throws(SecretError) -> Record {
    let times = encode(kind.rawValue, time ?? self.time)
    return try Record(
      id: id, sequence: sequence ?? self.sequence,
      parsing: encode(times, Array(bytes[times.count..<fieldsOffset]), sized(fields)))
  }

  /// The plaintext of the record's frame, without padding.
  package var frame: [UInt8] { encode(id, sequence, bytes) }

  /// The part of a frame that a reader needs in order to skip it.
  package struct Head: Sendable {
    package let id: Bytes16
    package let sequence: Int
    /// The length of the sealed value; 0 in a remove.
    package let valueLength: Int

    package var position: VersionPosition { VersionPosition(id: id, sequence: sequence) }

    /// The offset of the record's own bytes in the plaintext of a frame.
    private static let length = 24

    /// Reads the plaintext of a frame without its padding. Throws `.tampered`.
    package init(frame: Span<UInt8>) throws(SecretError) {
      let isPut = frame.count > Self.length && frame[Self.length] != Kind.remove.rawValue
      guard frame.count > Self.length + (isPut ? Record.tagEnd : 0) else { throw .tampered("a frame is cut short") }
      let (id, sequence, valueLength): (Bytes16, UInt64, UInt32) = frame.withUnsafeBytes { frame in
        let offset = Self.length + Record.lengthOffset
        return (Bytes16(frame), frame.integer(at: 16), isPut ? frame.integer(at: offset) : 0)
      }
      guard sequence < Layout.numberLimit, !isPut || Layout.isSealedValueLength(Int(valueLength)) else {
        throw .tampered("a frame has a number above the limit")
      }
      (self.id, self.sequence, self.valueLength) = (id, Int(sequence), Int(valueLength))
    }
  }

  /// Parses the plaintext of a frame without its padding. Throws `.tampered` and `.unsupportedVersion`.
  package init(frame: [UInt8]) throws(SecretError) {
    var reader = ByteReader(frame, part: "a frame")
    try self.init(id: try reader.bytes16(), sequence: try reader.sequence(), parsing: &reader)
    try reader.expectEnd()
  }

  /// Decodes the name of the secret.
  package func identifier() throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: bytes.text(in: service), account: bytes.text(in: account))
  }

  package func isAbout(_ identifier: SecretIdentifier) -> Bool {
    bytes[service].elementsEqual(identifier.service.utf8) && bytes[account].elementsEqual(identifier.account.utf8)
  }

  package func hasName(of other: Record) -> Bool {
    bytes[service] == other.bytes[other.service] && bytes[account] == other.bytes[other.account]
  }

  /// Whether the secret belongs to `service`, compared as bytes. `true` if `service` is `nil`.
  package func isInService(_ service: String?) -> Bool {
    guard let service else { return true }
    return bytes[self.service].elementsEqual(service.utf8)
  }

  /// Decodes the name and the metadata.
  package func item(isInConflict: Bool = false) throws(SecretError) -> SecretItem {
    SecretItem(identifier: try identifier(), metadata: metadata, isInConflict: isInConflict)
  }

  package var metadata: SecretMetadata {
    var metadata = SecretMetadata(expires: expires.map(Timestamp.date))
    (metadata.created, metadata.modified) = (Timestamp.date(created), Timestamp.date(time))
    if let label { metadata.label = bytes.text(in: label) }
    for attribute in attributes {
      // Names that are equal as texts and not as bytes are one name here: the first counts, with its value.
      let name = bytes.text(in: attribute.name)
      if metadata.attributes[name] == nil { metadata.attributes[name] = bytes.text(in: attribute.value) }
    }
    return metadata
  }
}
