internal import CofferVaultFormat
internal import CofferSystem
internal import CofferCore

/// Reads a file from front to back in large pieces, and hands out small ones.
struct BufferedFileReader {
  private let file: any File
  private let path: String
  /// Nothing at or past this offset is read.
  private let end: Int
  private var start = 0
  private(set) var bytes: [UInt8] = []

  private static let size = 65_536

  init(_ file: any File, path: String, end: Int) {
    self.file = file
    self.path = path
    self.end = end
  }

  /// Where in ``bytes`` the `count` bytes at `offset` of the file are now. Throws `.tampered` past the end.
  mutating func range(at offset: Int, count: Int) throws(SecretError) -> Range<Int> {
    guard count <= end - offset else { throw .tampered("a part reaches past the end") }
    if offset < start || offset + count > start + bytes.count {
      start = offset
      bytes = try file.readFully(min(max(count, Self.size), end - offset), at: offset, path: path)
    }
    return offset - start..<offset - start + count
  }

  /// A copy of the `count` bytes at `offset` of the file.
  mutating func array(at offset: Int, count: Int) throws(SecretError) -> [UInt8] {
    let range = try range(at: offset, count: count)
    return Array(bytes[range])
  }
}
