internal import CofferCore
internal import CofferVaultFormat

/// Reads a file from front to back in large pieces and returns small ones.
struct BufferedFileReader {
  private let file: any MediumFile
  /// Nothing at or after this offset is read.
  private let end: Int
  private var start = 0
  private(set) var bytes: [UInt8] = []

  private static let pieceLength = 65_536

  init(_ file: any MediumFile, end: Int) { (self.file, self.end) = (file, end) }

  /// Returns the range of ``bytes`` that holds the `count` bytes at `offset` of the file. Throws `.tampered` past the
  /// end.
  mutating func range(at offset: Int, count: Int) throws(SecretError) -> Range<Int> {
    guard count <= end - offset else { throw .tampered("a part reaches past the end") }
    if offset < start || offset + count > start + bytes.count {
      start = offset
      bytes = try file.read(min(max(count, Self.pieceLength), end - offset), at: offset)
    }
    return offset - start..<offset - start + count
  }

  /// Returns a copy of the `count` bytes at `offset` of the file.
  mutating func array(at offset: Int, count: Int) throws(SecretError) -> [UInt8] {
    let range = try range(at: offset, count: count)
    return Array(bytes[range])
  }
}
