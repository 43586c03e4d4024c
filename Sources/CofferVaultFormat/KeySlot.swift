package import CofferCore

/// The fields that one kind of key slot has between its label and its commitment.
package protocol KeySlotParameters: Sendable {
  /// The slot's type in the file.
  static var type: UInt8 { get }
  /// Reads the fields. Throws `.tampered`.
  init(parsing reader: inout ByteReader) throws(SecretError)
  var bytes: [UInt8] { get }
}

/// One way to open the vault: the master key, wrapped under a key that is derived from a credential.
package struct KeySlot: Sendable {
  /// The kinds of key slots. A slot of another kind is kept when the file is rewritten, and opens nothing.
  package static let kinds: [any KeySlotParameters.Type] = [
    PassphraseParameters.self, KeyParameters.self, X25519Parameters.self, HybridParameters.self,
  ]

  /// Zero if the slot is of an unknown kind, because the fields of such a slot are unknown too.
  package let id: Bytes16
  /// `nil` if the slot is of an unknown kind.
  package let parameters: (any KeySlotParameters)?
  /// Milliseconds since 1970.
  package let created: Int64
  package let label: String
  /// The bytes that the slot's key is bound to: from the type to the end of the parameters.
  package let header: [UInt8]
  package let commitment: [UInt8]
  /// The sealed master key.
  package let wrappedKey: [UInt8]
  /// The slot as the file has it.
  package let bytes: [UInt8]

  package var isKnown: Bool { parameters != nil }

  private static let version: UInt8 = 1
  private static let commitmentLength = 32
  private static let wrappedKeyLength = 32 + Layout.sealOverhead

  /// Encodes the header of a slot, to which its key is then bound.
  package static func header(
    id: Bytes16, parameters: some KeySlotParameters, created: Int64, label: String
  ) -> [UInt8] {
    let fields = parameters.bytes
    let length = 29 + label.utf8.count + fields.count + commitmentLength + wrappedKeyLength
    return encode(
      type(of: parameters).type, version, UInt16(length), id, created, UInt8(label.utf8.count), label,
      fields)
  }

  /// Makes a slot of a header and the bytes that were derived for it. Throws `.tampered` at a limit of the format.
  package init(header: [UInt8], commitment: [UInt8], wrappedKey: [UInt8]) throws(SecretError) {
    try self.init(parsing: header + commitment + wrappedKey, from: 0, to: nil)
  }

  /// Parses the slot that begins at `start` and must end at or before `end`. Throws `.tampered`.
  package init(parsing all: [UInt8], from start: Int, to end: Int?) throws(SecretError) {
    var outer = ByteReader(all, from: start, to: end, part: "a key slot")
    let type = try outer.u8()
    let version = try outer.u8()
    let length = Int(try outer.u16())
    guard length >= 4 else { throw outer.failure("is cut short") }
    _ = try outer.range(length - 4)
    bytes = Array(all[start..<start + length])
    guard version == Self.version, let kind = Self.kinds.first(where: { $0.type == type }) else {
      (id, parameters, created, label) = (.zero, nil, 0, "")
      (header, commitment, wrappedKey) = ([], [], [])
      return
    }
    var reader = ByteReader(bytes, from: 4, part: "a key slot")
    id = try reader.bytes16()
    created = try reader.i64()
    label = try reader.slotLabel()
    parameters = try kind.init(parsing: &reader)
    header = Array(bytes[..<reader.position])
    commitment = try reader.array(Self.commitmentLength)
    wrappedKey = try reader.array(Self.wrappedKeyLength)
    try reader.expectEnd()
  }
}
