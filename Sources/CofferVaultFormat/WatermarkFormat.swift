package import CofferCore

/// The file of a watermark: the newest checkpoint of a vault that this user has seen, stored outside the
/// vault.
///
/// Its last 16 bytes are a hash of the bytes before them, so that a reader can tell a file that a power loss
/// tore.
package enum WatermarkFormat {
  package static let length = hashedLength + 16
  package static let hashedLength = 64
  private static let magic = Array("COFFERW1".utf8)

  /// The bytes that the hash covers. `mac` authenticates the checkpoint.
  package static func hashedBytes(_ checkpoint: Checkpoint, mac: [UInt8]) -> [UInt8] {
    encode(magic, checkpoint.sequence, checkpoint.tailTag, mac)
  }

  /// Parses the bytes that the hash covers. The caller must check the MAC. Throws `.tampered` if they are
  /// malformed.
  package static func parse(_ bytes: [UInt8]) throws(SecretError) -> (Checkpoint, mac: [UInt8]) {
    var reader = ByteReader(bytes, part: "the watermark")
    guard try reader.array(magic.count) == magic else { throw reader.failure("has another magic number") }
    let checkpoint = Checkpoint(sequence: try reader.number(), tailTag: try reader.bytes16())
    let mac = try reader.array(32)
    try reader.expectEnd()
    return (checkpoint, mac)
  }
}
