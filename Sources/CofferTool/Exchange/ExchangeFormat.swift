internal import Coffer

/// The formats that `import` reads.
enum ExchangeFormat {
  case dotenv, json

  /// The format of a file's contents. No dotenv file begins with a brace.
  static func of(_ contents: borrowing SecretBytes) -> ExchangeFormat {
    contents.withBytes { bytes in
      for index in bytes.indices where !" \t\r\n".utf8.contains(bytes[index]) {
        return bytes[index] == UInt8(ascii: "{") ? .json : .dotenv
      }
      return .dotenv
    }
  }
}
