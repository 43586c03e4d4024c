internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// Version 1 of cargo's credential provider protocol: a line of JSON for each message.
enum CargoProtocol {
  struct Request: Decodable {
    struct Registry: Decodable {
      var indexURL: String
      private enum CodingKeys: String, CodingKey { case indexURL = "index-url" }
    }
    var v: Int
    var kind: String
    var registry: Registry
    var token: String?
  }

  /// The largest line in bytes. A token is much shorter.
  private static let longestLine = 64 << 10

  /// Reads one line of standard input, without its line feed, or returns `nil` at the end. Reads no further byte,
  /// because cargo sends the next request only after the answer. Throws `.tooLarge` above 64 KiB.
  static func readLine() throws(SecretError) -> SecretBytes? {
    var isAtEnd = false
    let line = try SecretBytes(capacity: longestLine) { block throws(SecretError) in
      var count = 0
      while count < longestLine {
        let got = read(STDIN_FILENO, block.baseAddress.map { $0 + count }, 1)
        if got < 0 && errno == EINTR { continue }
        if got < 0 { throw SecretError(.io, "Could not read standard input: \(FileSystemError(errno)).") }
        isAtEnd = got == 0
        if isAtEnd || block[count] == UInt8(ascii: "\n") { return count }
        count += 1
      }
      throw SecretError(.tooLarge, "A line of standard input is longer than \(longestLine) bytes.")
    }
    return isAtEnd && line.isEmpty ? nil : line
  }
}
