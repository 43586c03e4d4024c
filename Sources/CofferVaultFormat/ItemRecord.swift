package import CofferCore
internal import FoundationEssentials

/// What is known of one stored secret beside its value: the metadata of a put.
///
/// It keeps its encoded bytes, so that a rewrite copies them, and decodes text only when asked.
package struct ItemRecord: Sendable {
  package let id: Bytes16
  package let sequence: Int
  /// The tag of the sealed value: it ties the value to this record.
  package let valueTag: Bytes16
  /// The record as it stands in a frame or block, without padding.
  package let bytes: [UInt8]

  private let created: Int64
  private let modified: Int64
  private let expires: Int64?
  private let service: Range<Int>
  private let account: Range<Int>
  private let label: Range<Int>?
  private let attributes: [(name: Range<Int>, value: Range<Int>)]

  private static let labelFlag: UInt8 = 1
  private static let expiryFlag: UInt8 = 2

  /// Reads a record from `reader`, which stands at its end afterwards.
  package init(parsing reader: inout ByteReader) throws(SecretError) {
    let start = reader.position
    id = try reader.bytes16()
    sequence = try reader.number()
    valueTag = try reader.bytes16()
    created = try reader.i64()
    modified = try reader.i64()
    let flags = try reader.u8()
    guard flags & ~(Self.labelFlag | Self.expiryFlag) == 0 else {
      throw reader.failure("has reserved flags")
    }
    let service = try reader.text(1...SecretIdentifier.maximumLength)
    let account = try reader.text(1...SecretIdentifier.maximumLength)
    let label =
      flags & Self.labelFlag == 0 ? nil : try reader.text(0...SecretMetadata.maximumLabelLength)
    expires = flags & Self.expiryFlag == 0 ? nil : try reader.i64()
    let count = Int(try reader.u8())
    guard count <= SecretMetadata.maximumAttributeCount else {
      throw reader.failure("has too many attributes")
    }
    var attributes: [(name: Range<Int>, value: Range<Int>)] = []
    for _ in 0..<count {
      let name = try reader.text(1...SecretMetadata.maximumAttributeNameLength)
      let value = try reader.text(0...SecretMetadata.maximumAttributeValueLength)
      if let last = attributes.last,
        !reader.bytes[last.name].lexicographicallyPrecedes(reader.bytes[name])
      {
        throw reader.failure("has attributes out of order")
      }
      attributes.append((name, value))
    }
    // From here on ranges count from the record's own start.
    func own(_ range: Range<Int>) -> Range<Int> { range.lowerBound - start..<range.upperBound - start }
    bytes = Array(reader.bytes[start..<reader.position])
    (self.service, self.account, self.label) = (own(service), own(account), label.map(own))
    self.attributes = attributes.map { (own($0.name), own($0.value)) }
  }

  /// Encodes a record. `item` has been validated.
  package static func encode(
    id: Bytes16,
    sequence: Int,
    valueTag: Bytes16,
    item: SecretItem
  ) -> [UInt8] {
    let metadata = item.metadata
    var bytes: [UInt8] = []
    bytes.reserveCapacity(160)
    id.append(to: &bytes)
    bytes.append(little: UInt64(sequence))
    valueTag.append(to: &bytes)
    bytes.append(little: Timestamp.milliseconds(metadata.created))
    bytes.append(little: Timestamp.milliseconds(metadata.modified))
    bytes.append(
      (metadata.label == nil ? 0 : labelFlag) | (metadata.expires == nil ? 0 : expiryFlag)
    )
    bytes.append(text: item.identifier.service)
    bytes.append(text: item.identifier.account)
    if let label = metadata.label { bytes.append(text: label) }
    if let expires = metadata.expires { bytes.append(little: Timestamp.milliseconds(expires)) }
    bytes.append(UInt8(metadata.attributes.count))
    for (name, value) in metadata.attributes.sorted(by: {
      $0.key.utf8.lexicographicallyPrecedes($1.key.utf8)
    }) {
      bytes.append(text: name)
      bytes.append(text: value)
    }
    return bytes
  }

  /// The same record for a value sealed anew under other keys.
  package func encoded(id: Bytes16, valueTag: Bytes16) -> [UInt8] {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(bytes.count)
    id.append(to: &encoded)
    encoded.append(little: UInt64(sequence))
    valueTag.append(to: &encoded)
    return encoded + bytes[40...]
  }

  /// The name the record is for.
  package func identifier() throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(
      service: decodedText(bytes, service),
      account: decodedText(bytes, account)
    )
  }

  /// Whether the record is for a secret of `service`, decided on bytes.
  package func isInService(_ service: String?) -> Bool {
    guard let service else { return true }
    return bytes[self.service].elementsEqual(service.utf8)
  }

  /// Name and metadata, decoded.
  package func item() throws(SecretError) -> SecretItem {
    var metadata = SecretMetadata(
      created: Timestamp.date(created),
      modified: Timestamp.date(modified),
      expires: expires.map(Timestamp.date)
    )
    if let label { metadata.label = try decodedText(bytes, label) }
    for attribute in attributes {
      metadata.attributes[try decodedText(bytes, attribute.name)] = try decodedText(bytes, attribute.value)
    }
    return SecretItem(identifier: try identifier(), metadata: metadata)
  }
}

/// The metadata of a remove: which secret it was.
package struct RemoveRecord: Sendable {
  package let id: Bytes16
  package let identifier: SecretIdentifier

  package init(parsing reader: inout ByteReader) throws(SecretError) {
    id = try reader.bytes16()
    let service = try reader.text(1...SecretIdentifier.maximumLength)
    let account = try reader.text(1...SecretIdentifier.maximumLength)
    try reader.expectEnd()
    identifier = try SecretIdentifier(
      service: decodedText(reader.bytes, service),
      account: decodedText(reader.bytes, account)
    )
  }

  package static func encode(id: Bytes16, identifier: SecretIdentifier) -> [UInt8] {
    var bytes: [UInt8] = []
    id.append(to: &bytes)
    bytes.append(text: identifier.service)
    bytes.append(text: identifier.account)
    return bytes
  }
}
