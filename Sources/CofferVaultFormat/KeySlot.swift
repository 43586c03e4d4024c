package import CofferCore

/// One way to open the vault: the master key, wrapped under a key that is derived from a credential.
package struct KeySlot: Sendable {
  /// Zero if the slot is of an unknown type, because the fields of such a slot are unknown too.
  package let id: Bytes16
  /// `nil` if the slot is of an unknown type. Such a slot is kept when the file is rewritten, and opens nothing.
  package let parameters: KeySlotParameters?
  /// Milliseconds since 1970.
  package let created: Int64
  package let label: String
  /// The slot as the file has it.
  package let bytes: ArraySlice<UInt8>

  package var isKnown: Bool { parameters != nil }

  private static let version: UInt8 = 1
  private static let commitmentLength = 32
  private static let wrappedKeyLength = 32 + Layout.sealOverhead

  /// The bytes to which the slot's key is bound, for a known type: from the type to the end of the parameters.
  package var header: [UInt8] { Array(bytes.dropLast(Self.commitmentLength + Self.wrappedKeyLength)) }
  package var commitment: [UInt8] {
    Array(bytes.dropLast(Self.wrappedKeyLength).suffix(Self.commitmentLength))
  }
  /// The sealed master key.
  package var wrappedKey: [UInt8] { Array(bytes.suffix(Self.wrappedKeyLength)) }

  /// Encodes the header of a slot, to which its key is then bound.
  package static func header(id: Bytes16, parameters: KeySlotParameters, created: Int64, label: String) -> [UInt8] {
    let fields = parameters.bytes
    let length = 29 + label.utf8.count + fields.count + commitmentLength + wrappedKeyLength
    return encode(
      parameters.kind.rawValue, version, UInt16(length), id, created, UInt8(label.utf8.count), label, fields)
  }

  /// Makes a slot from a header and the bytes that were derived for it. Throws `.tampered` at a limit of the format.
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
    bytes = all[start..<start + length]
    guard version == Self.version, let kind = KeySlotParameters.Kind(rawValue: type) else {
      (id, parameters, created, label) = (.zero, nil, 0, "")
      return
    }
    var reader = ByteReader(all, from: start + 4, to: start + length, part: "a key slot")
    id = try reader.bytes16()
    created = try reader.i64()
    label = try reader.slotLabel()
    parameters = try KeySlotParameters(kind, parsing: &reader)
    _ = try reader.range(Self.commitmentLength + Self.wrappedKeyLength)
    try reader.expectEnd()
  }
}
