/// Sixteen bytes that are only compared: an id or an authentication tag. They are ordered byte by byte, first byte
/// first.
package struct Bytes16: Hashable, Comparable, Sendable, Field {
  private var high: UInt64
  private var low: UInt64

  package static let zero = Bytes16(high: 0, low: 0)

  private init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Reads 16 bytes at `offset`. The caller has checked that `bytes` has them.
  package init(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) {
    high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
  }

  /// The tag of a seal: its last 16 bytes.
  package init(tagOf sealed: [UInt8]) {
    self = sealed.withUnsafeBytes { Bytes16($0, at: $0.count - 16) }
  }

  package static func < (left: Self, right: Self) -> Bool {
    left.high == right.high ? left.low < right.low : left.high < right.high
  }

  package func append(to bytes: inout [UInt8]) {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { bytes.append(contentsOf: $0) }
  }

  /// 32 lower-case hexadecimal digits.
  package var hex: String { encode(self).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
