package import CofferCore

/// The first bytes of a frame in the tail.
package struct FrameHeader: Sendable {
  package enum Kind: UInt8, Sendable {
    case put = 1
    case remove = 2
  }

  package var kind: Kind
  package var sequence: Int
  /// Lengths of the padded plaintexts.
  package var metadataLength: Int
  package var valueLength: Int

  package init(kind: Kind, sequence: Int, metadataLength: Int, valueLength: Int) {
    self.kind = kind
    self.sequence = sequence
    self.metadataLength = metadataLength
    self.valueLength = valueLength
  }

  package var sealedMetadataLength: Int { metadataLength + Layout.sealOverhead }
  package var sealedValueLength: Int { kind == .put ? valueLength + Layout.sealOverhead : 0 }
  /// The whole frame, in bytes.
  package var frameLength: Int { Layout.frameHeaderLength + sealedMetadataLength + sealedValueLength }

  /// Parses the header at `start` of `bytes`.
  package init(parsing bytes: [UInt8], from start: Int) throws(SecretError) {
    var reader = ByteReader(bytes, from: start, part: "a frame")
    let length = Int(try reader.u32())
    guard let kind = Kind(rawValue: try reader.u8()) else { throw reader.failure("is of no known kind") }
    self.kind = kind
    try reader.zeros(3)
    sequence = try reader.number()
    metadataLength = Int(try reader.u32())
    valueLength = Int(try reader.u32())
    guard metadataLength > 0, metadataLength % Layout.paddingUnit == 0,
      metadataLength <= Layout.maximumMetadataLength,
      valueLength % Layout.paddingUnit == 0, (kind == .put) == (valueLength > 0),
      valueLength <= Layout.padded(Layout.maximumValueLength),
      length == frameLength
    else { throw reader.failure("has lengths that contradict each other") }
  }

  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Layout.frameHeaderLength)
    bytes.append(little: UInt32(frameLength))
    bytes.append(kind.rawValue)
    bytes.append(contentsOf: [0, 0, 0])
    bytes.append(little: UInt64(sequence))
    bytes.append(little: UInt32(metadataLength))
    bytes.append(little: UInt32(valueLength))
    return bytes
  }
}
