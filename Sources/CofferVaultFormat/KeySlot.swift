package import CofferCore

/// One way to open the vault: the master key, wrapped under a key that a credential gives.
package struct KeySlot: Sendable {
  package enum Parameters: Sendable, Equatable {
    /// Argon2id with this many passes over this much memory, in KiB.
    case passphrase(passes: UInt32, memory: UInt32)
    case key
    /// A kind that this code does not know. It is kept, and opens nothing.
    case unknown(type: UInt8)
  }

  package let id: Bytes16
  package let parameters: Parameters
  package let salt: [UInt8]
  /// Milliseconds since 1970.
  package let created: Int64
  package let label: String
  /// From the type to the end of the parameters: what the slot's key is bound to.
  package let slotHeader: [UInt8]
  package let commitment: [UInt8]
  /// Nonce, wrapped master key and tag.
  package let wrappedKey: [UInt8]
  /// The slot as it stands in the file.
  package let bytes: [UInt8]
  package var length: Int { bytes.count }
  /// Whether this code can tell what is in it. Where not, its id is zero.
  package var isKnown: Bool {
    if case .unknown = parameters { false } else { true }
  }

  private static let wrappedLength = 32 + Layout.sealOverhead
  private static let saltLength = 16
  private static let version: UInt8 = 1

  /// A slot's header, before there is a key to wrap under.
  package static func slotHeader(
    id: Bytes16,
    parameters: Parameters,
    salt: [UInt8],
    created: Int64,
    label: String
  ) -> [UInt8] {
    var type: UInt8 = 2
    var fields: [UInt8] = []
    if case .passphrase(let passes, let memory) = parameters {
      type = 1
      fields.append(little: passes)
      fields.append(little: memory)
    }
    fields += salt
    let length = 29 + label.utf8.count + fields.count + 32 + wrappedLength
    var bytes: [UInt8] = [type, version]
    bytes.append(little: UInt16(length))
    id.append(to: &bytes)
    bytes.append(little: created)
    bytes.append(UInt8(label.utf8.count))
    bytes.append(contentsOf: label.utf8)
    return bytes + fields
  }

  /// Puts a slot together from a header made above and what was derived for it.
  package init(
    slotHeader: [UInt8],
    commitment: [UInt8],
    wrappedKey: [UInt8]
  ) throws(SecretError) {
    try self.init(parsing: slotHeader + commitment + wrappedKey, from: 0, to: nil)
  }

  /// Parses the slot that begins at `start` and must end at or before `end`.
  package init(parsing all: [UInt8], from start: Int, to end: Int?) throws(SecretError) {
    var outer = ByteReader(all, from: start, to: end, part: "a key slot")
    let type = try outer.u8()
    let version = try outer.u8()
    let length = Int(try outer.u16())
    guard length >= 4 else { throw outer.failure("is cut short") }
    _ = try outer.range(length - 4)
    bytes = Array(all[start..<start + length])
    var reader = ByteReader(bytes, from: 4, part: "a key slot")
    guard version == Self.version, type == 1 || type == 2 else {
      // Not even where it has its id is known.
      id = .zero
      parameters = .unknown(type: type)
      (salt, created, label, slotHeader, commitment, wrappedKey) = ([], 0, "", [], [], [])
      return
    }
    id = try reader.bytes16()
    created = try reader.i64()
    let labelRange = try reader.range(Int(try reader.u8()))
    guard labelRange.count <= Layout.maximumSlotLabelLength, !bytes[labelRange].contains(0) else {
      throw reader.failure("has a forbidden label")
    }
    label = try decodedText(bytes, labelRange)
    parameters =
      type == 1 ? .passphrase(passes: try reader.u32(), memory: try reader.u32()) : .key
    salt = try reader.array(Self.saltLength)
    slotHeader = Array(bytes[..<reader.position])
    commitment = try reader.array(32)
    wrappedKey = try reader.array(Self.wrappedLength)
    try reader.expectEnd()
  }
}
