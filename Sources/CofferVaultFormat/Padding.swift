/// The padding of metadata and values (ISO/IEC 7816-4): a mark, then zeros up to a multiple of the unit.
package enum Padding {
  package static let mark: UInt8 = 0x80

  package static func pad(_ bytes: [UInt8]) -> [UInt8] {
    encode(bytes, mark, zeros(Layout.padded(bytes.count) - bytes.count - 1))
  }

  /// Returns the length of a padded plaintext without its padding, or `nil` if the padding is malformed.
  package static func unpaddedCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard let count = bytes.lastIndex(where: { $0 != 0 }), bytes[count] == mark,
      Layout.padded(count) == bytes.count
    else { return nil }
    return count
  }
}
