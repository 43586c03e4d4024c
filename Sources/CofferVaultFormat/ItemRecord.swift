package import CofferCore
internal import FoundationEssentials

/// Everything that the vault stores about one secret, except its value: the metadata of a put.
///
/// A record keeps its encoded bytes, so that a rewrite copies them, and decodes texts only on request.
package struct ItemRecord: Sendable {
  package let id: Bytes16
  package let sequence: Int
  /// The tag of the sealed value, which ties the value to this record.
  package let valueTag: Bytes16
  /// The record as a frame or a block has it, without padding.
  package let bytes: [UInt8]

  private let created: Int64
  private let modified: Int64
  private let expires: Int64?
  // Ranges of `bytes`.
  private let service: Range<Int>
  private let account: Range<Int>
  private let label: Range<Int>?
  private let attributes: [(name: Range<Int>, value: Range<Int>)]

  private static let labelFlag: UInt8 = 1
  private static let expiryFlag: UInt8 = 2
  /// The length of id, sequence and tag.
  private static let prefixLength = 40

  /// Parses a record, and leaves `reader` at its end.
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
    func fromStart(_ range: Range<Int>) -> Range<Int> {
      range.lowerBound - start..<range.upperBound - start
    }
    bytes = Array(reader.bytes[start..<reader.position])
    (self.service, self.account, self.label) = (fromStart(service), fromStart(account), label.map(fromStart))
    self.attributes = attributes.map { (fromStart($0.name), fromStart($0.value)) }
  }

  /// Encodes a record. The caller has validated `item`.
  package init(id: Bytes16, sequence: Int, valueTag: Bytes16, item: SecretItem) {
    let metadata = item.metadata
    (self.id, self.sequence, self.valueTag) = (id, sequence, valueTag)
    created = Timestamp.milliseconds(metadata.created)
    modified = Timestamp.milliseconds(metadata.modified)
    expires = metadata.expires.map(Timestamp.milliseconds)
    let flags = (metadata.label == nil ? 0 : Self.labelFlag) | (expires == nil ? 0 : Self.expiryFlag)
    var bytes = encode(id, sequence, valueTag, created, modified, flags)
    func append(_ text: String) -> Range<Int> {
      Text(text).append(to: &bytes)
      return bytes.count - text.utf8.count..<bytes.count
    }
    service = append(item.identifier.service)
    account = append(item.identifier.account)
    label = metadata.label.map(append)
    expires?.append(to: &bytes)
    bytes.append(UInt8(metadata.attributes.count))
    let sorted = metadata.attributes.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    attributes = sorted.map { (append($0.key), append($0.value)) }
    self.bytes = bytes
  }

  /// The bytes of the same record for the same value, sealed under other keys.
  package func encoded(id: Bytes16, valueTag: Bytes16) -> [UInt8] {
    encode(id, sequence, valueTag) + bytes[Self.prefixLength...]
  }

  /// Decodes the name of the secret. Throws `.tampered`.
  package func identifier() throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: bytes.text(in: service), account: bytes.text(in: account))
  }

  /// Whether the secret belongs to `service`, compared as bytes. Every secret does if `service` is `nil`.
  package func isInService(_ service: String?) -> Bool {
    guard let service else { return true }
    return bytes[self.service].elementsEqual(service.utf8)
  }

  /// Decodes the name and the metadata. Throws `.tampered`.
  package func item() throws(SecretError) -> SecretItem {
    var metadata = SecretMetadata(
      created: Timestamp.date(created), modified: Timestamp.date(modified),
      expires: expires.map(Timestamp.date))
    if let label { metadata.label = try bytes.text(in: label) }
    for attribute in attributes {
      metadata.attributes[try bytes.text(in: attribute.name)] = try bytes.text(in: attribute.value)
    }
    return SecretItem(identifier: try identifier(), metadata: metadata)
  }
}
