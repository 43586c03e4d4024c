internal import Coffer
internal import Glibc

extension ValueInput {
  /// The most bytes in a line of another program's protocol.
  private static let longestLine = 64 << 10

  /// One line without its line feed, or `nil` at the end of the input; reads nothing beyond. Throws `.tooLarge`
  /// above 64 KiB.
  static func readLine(_ descriptor: Int32, named name: String) throws(SecretError) -> SecretBytes? {
    var count = 0
    var ended = false
    let line = try SecretBytes(count: longestLine) { block throws(SecretError) in
      while count < longestLine {
        let got = Glibc.read(descriptor, block.baseAddress.map { $0 + count }, 1)
        if got < 0 && errno == EINTR { continue }
        if got < 0 { throw SecretError(.io, "Could not read \(name): \(systemMessage(errno)).") }
        if got == 0 {
          ended = true
          return
        }
        if block[count] == UInt8(ascii: "\n") { return }
        count += 1
      }
    }
    if count == longestLine {
      throw SecretError(.tooLarge, "A line of \(name) is longer than \(longestLine) bytes.")
    }
    if ended && count == 0 { return nil }
    return line.withBytes { SecretBytes(copying: $0.extracting(0..<count)) }
  }
}
