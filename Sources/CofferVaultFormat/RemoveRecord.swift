package import CofferCore

/// The metadata of a remove: which secret was removed.
package struct RemoveRecord: Sendable {
  package let id: Bytes16
  package let identifier: SecretIdentifier

  package init(id: Bytes16, identifier: SecretIdentifier) {
    self.id = id
    self.identifier = identifier
  }

  /// Parses a record that ends where `reader` ends.
  package init(parsing reader: inout ByteReader) throws(SecretError) {
    id = try reader.bytes16()
    let service = try reader.text(1...SecretIdentifier.maximumLength)
    let account = try reader.text(1...SecretIdentifier.maximumLength)
    try reader.expectEnd()
    identifier = try SecretIdentifier(
      service: reader.bytes.text(in: service), account: reader.bytes.text(in: account))
  }

  package var bytes: [UInt8] { encode(id, Text(identifier.service), Text(identifier.account)) }
}
