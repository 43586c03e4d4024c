package import CofferCore

/// The parameters of a key's slot: a salt, since the key itself is the slot's secret.
package struct KeyParameters: KeySlotParameters {
  package static let type: UInt8 = 2

  package let salt: [UInt8]

  /// `salt` has 16 bytes.
  package init(salt: [UInt8]) { self.salt = salt }

  package init(parsing reader: inout ByteReader) throws(SecretError) { salt = try reader.array(16) }

  package var bytes: [UInt8] { salt }
}
