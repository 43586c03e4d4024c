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

/// An optional field of a record or of the root, with a type and a length, so that later versions can add fields. Three
/// bits of the type say what becomes of a field whose type is not known.
package struct TaggedField: Sendable {
  package let type: UInt16
  package let content: [UInt8]

  /// The bytes before the content: type and length.
  static let headLength = 6

  package init(_ type: UInt16, _ content: [UInt8]) { (self.type, self.content) = (type, content) }

  /// A reader refuses the record or the root.
  var isCritical: Bool { type & 0x8000 != 0 }
  /// A rewrite leaves the field out. Otherwise it copies the field.
  var isLeftOut: Bool { type & 0x4000 != 0 }
  /// The field belongs to the secret, and is taken over when another value is stored.
  var isTakenOver: Bool { type & 0x2000 != 0 }
}

/// A list of tagged fields with its `u32` length. The types must ascend.
package func sized(_ fields: [TaggedField]) -> [UInt8] {
  let content = fields.flatMap { encode($0.type, UInt32($0.content.count), $0.content) }
  return encode(UInt32(content.count), content)
}
