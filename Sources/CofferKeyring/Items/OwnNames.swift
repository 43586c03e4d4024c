#if Keyring
internal import CofferCore

/// The names of the attributes that this module gave an item as metadata, as the text of one attribute: sorted,
/// separated by spaces, and with `%` and white space percent-encoded.
///
/// All other attributes of the item belong to another program.
struct OwnNames {
  private var names: Set<[UInt8]>  // by bytes, unlike strings

  init(_ text: String? = nil) {
    names = Set((text ?? "").utf8.split(separator: UInt8(ascii: " ")).map { Self.decoded($0) })
  }

  /// `nil` if there are no names.
  var text: String? { names.isEmpty ? nil : names.map(Self.encoded).sorted().joined(separator: " ") }

  func contains(_ name: String) -> Bool { names.contains(Array(name.utf8)) }

  mutating func insert(_ name: String) { names.insert(Array(name.utf8)) }

  private static func encoded(_ name: [UInt8]) -> String {
    let bytes = name.flatMap { byte in
      if byte > 0x20 && byte != UInt8(ascii: "%") && byte != 0x7F { return [byte] }
      return Array("%\(byte.hexadecimal)".utf8)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func decoded(_ text: Substring.UTF8View.SubSequence) -> [UInt8] {
    var result: [UInt8] = []
    var rest = Array(text)[...]
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      if byte == UInt8(ascii: "%"), digits.utf8.count == 2, let value = UInt8(digits, radix: 16) {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }
}
#endif
