internal import Coffer

/// `key=value` lines, one after the other to a blank line or the end, with the values that are secret never
/// outside guarded memory: the format of git's credential helpers.
struct SecretLines {
  private let secrets: [String: SharedSecret]
  private let texts: [String: [String]]

  /// Parses `input`. Values of the keys in `secretKeys` are kept as bytes; of one given twice the last counts.
  /// A key ending in `[]` collects its values, and an empty one starts it anew.
  init(_ input: borrowing SecretBytes, secretKeys: Set<String>) throws(Failure) {
    (secrets, texts) = try input.withBytes { bytes throws(Failure) in
      var secrets: [String: SharedSecret] = [:]
      var texts: [String: [String]] = [:]
      var start = 0
      var number = 0
      while start < bytes.count {
        number += 1
        var end = start
        while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
        let line = bytes.extracting(start..<end)
        start = end + 1
        if line.isEmpty { break }
        guard let (key, value) = Self.split(line) else {
          throw .usage("Line \(number) of the input is no key=value. Nothing was done.")
        }
        if secretKeys.contains(key) {
          secrets[key] = SharedSecret(SecretBytes(copying: line.extracting(value..<line.count)))
          continue
        }
        let text = line.extracting(value..<line.count).withUnsafeBufferPointer {
          String(validating: $0, as: UTF8.self)
        }
        guard let text else {
          throw .usage("The value of \(key.printable), line \(number) of the input, is not UTF-8 text.")
        }
        if key.hasSuffix("[]") {
          texts[key] = text.isEmpty ? [] : (texts[key] ?? []) + [text]
        } else {
          texts[key] = [text]
        }
      }
      return (secrets, texts)
    }
  }

  /// The key, and where the value begins.
  private static func split(_ line: Span<UInt8>) -> (key: String, value: Int)? {
    for index in line.indices where line[index] == UInt8(ascii: "=") {
      let key = line.extracting(0..<index).withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
      guard let key, !key.isEmpty else { return nil }
      return (key, index + 1)
    }
    return nil
  }

  /// The value of a key that is no secret; `nil` where it was not given.
  func text(_ key: String) -> String? { texts[key]?.last }

  /// All values of a key that ends in `[]`.
  func all(_ key: String) -> [String] { texts[key] ?? [] }

  /// A secret value; `nil` where it was not given.
  func secret(_ key: String) -> SharedSecret? { secrets[key] }
}
