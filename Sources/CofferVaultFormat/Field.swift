package protocol Field {
  func append(to bytes: inout [UInt8])
}

/// Encodes fields one after the other. Integers are little-endian, and an `Int` is a `u64` and must not be negative.
package func encode<each F: Field>(_ fields: repeat each F) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(64)
  repeat (each fields).append(to: &bytes)
  return bytes
}

extension Field where Self: FixedWidthInteger {
  package func append(to bytes: inout [UInt8]) {
    withUnsafeBytes(of: littleEndian) { bytes.append(contentsOf: $0) }
  }
}

extension UInt8: Field {}
extension UInt16: Field {}
extension UInt32: Field {}
extension Int64: Field {}
extension UInt64: Field {}

extension Int: Field {
  package func append(to bytes: inout [UInt8]) { UInt64(self).append(to: &bytes) }
}

extension [UInt8]: Field {
  package func append(to bytes: inout [UInt8]) { bytes += self }
}

/// The UTF-8 bytes without a length or a terminator.
extension String: Field {
  package func append(to bytes: inout [UInt8]) { bytes += utf8 }
}

/// Reserved bytes.
package func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

/// A text with its `u16` length.
package func sized(_ text: String) -> [UInt8] { encode(UInt16(text.utf8.count), text) }

/// An optional field of a record or of the root, with a type and a length, so that later versions can add fields.
package struct TaggedField: Sendable {
  /// The first critical type. A reader refuses a record or a root with a critical field that it does not know.
  package static let firstCritical: UInt16 = 0x8000

  package let type: UInt16
  package let content: [UInt8]

  package init(_ type: UInt16, _ content: [UInt8]) { (self.type, self.content) = (type, content) }
}

/// A list of tagged fields with its `u16` length. The types must ascend.
///
/// A list that is too long is encoded with a wrong length. Readers refuse it, and so does the writer's own check.
package func sized(_ fields: [TaggedField]) -> [UInt8] {
  let content = fields.flatMap { encode($0.type, UInt16(clamping: $0.content.count), $0.content) }
  return encode(UInt16(clamping: content.count), content)
}
