package import CofferCore

/// The plaintext of a frame's metadata: a record, and the length of the sealed value that follows.
package struct FrameMetadata: Sendable {
  package let record: Record
  /// The length of the sealed value; 0 in a remove.
  package let valueLength: Int

  /// Parses metadata without its padding. Throws `.tampered`.
  package init(parsing bytes: [UInt8]) throws(SecretError) {
    var reader = ByteReader(bytes, part: "a frame")
    valueLength = Int(try reader.u32())
    record = try Record(parsing: &reader)
    try reader.expectEnd()
    guard record.kind == .put ? Layout.isSealedValueLength(valueLength) : valueLength == 0 else {
      throw reader.failure("has a value of a wrong length")
    }
  }

  package static func encoded(_ record: Record, valueLength: Int) -> [UInt8] {
    encode(UInt32(valueLength), record.bytes)
  }

  /// Reads the length of the padded metadata from the first field of a frame. Throws `.tampered`.
  package static func length(in field: [UInt8], mask: UInt32) throws(SecretError) -> Int {
    var reader = ByteReader(field, part: "a frame")
    let length = Int(try reader.u32() ^ mask)
    guard length > 0, length % Layout.paddingUnit == 0, length <= Layout.maximumMetadataLength else {
      throw reader.failure("has a forbidden length")
    }
    return length
  }
}
