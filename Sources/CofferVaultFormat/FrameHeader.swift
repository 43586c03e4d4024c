package import CofferCore

/// The first bytes of a frame in the tail.
package struct FrameHeader: Sendable {
  package enum Kind: UInt8, Sendable {
    case put = 1
    case remove = 2
  }

  package var kind: Kind
  package var sequence: Int
  /// The length of the padded metadata.
  package var metadataLength: Int
  /// The length of the padded value; 0 in a remove.
  package var valueLength: Int

  package init(kind: Kind, sequence: Int, metadataLength: Int, valueLength: Int) {
    self.kind = kind
    self.sequence = sequence
    self.metadataLength = metadataLength
    self.valueLength = valueLength
  }

  package var sealedMetadataLength: Int { metadataLength + Layout.sealOverhead }
  package var sealedValueLength: Int { kind == .put ? valueLength + Layout.sealOverhead : 0 }
  /// The length of the whole frame.
  package var frameLength: Int { replayLength + sealedValueLength }
  /// The bytes that every reader of the tail reads: the frame without its value.
  package var replayLength: Int { Layout.frameHeaderLength + sealedMetadataLength }

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
    encode(
      UInt32(frameLength), kind.rawValue, Zeros(3), sequence, UInt32(metadataLength), UInt32(valueLength))
  }
}
