internal import Coffer

/// The `key=value` lines of git's credential protocol, up to a blank line or the end. Secrets stay in guarded memory.
struct GitCredentialLines {
  private let secrets: [String: SecretBytes]
  private let texts: [String: [String]]

  /// Parses `input`. The values of `secretKeys` are secret. If a key occurs again, its last value counts. A key that
  /// ends in `[]` has several values, and an empty value removes the earlier ones.
  init(_ input: SecretBytes, secretKeys: Set<String>) throws(Failure) {
    (secrets, texts) = try input.withBytes { bytes throws(Failure) in
      var secrets: [String: SecretBytes] = [:]
      var texts: [String: [String]] = [:]
      var start = 0
      var number = 0
      while start < bytes.count {
        number += 1
        let end = (start..<bytes.count).first { bytes[$0] == UInt8(ascii: "\n") } ?? bytes.count
        let line = bytes.extracting(start..<end)
        start = end + 1
        if line.isEmpty { break }
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")),
          let key = Self.text(line.extracting(..<equals)), !key.isEmpty
        else {
          throw .usage("Line \(number) of the input is not of the form key=value. Nothing was done.")
        }
        let value = line.extracting((equals + 1)...)
        if secretKeys.contains(key) {
          secrets[key] = SecretBytes(value)
          continue
        }
        guard let text = Self.text(value) else {
          throw .usage("The value of \(key.printable) on line \(number) of the input is not UTF-8. Nothing was done.")
        }
        let earlier = key.hasSuffix("[]") ? texts[key] ?? [] : []
        texts[key] = key.hasSuffix("[]") && text.isEmpty ? [] : earlier + [text]
      }
      return (secrets, texts)
    }
  }

  private static func text(_ bytes: Span<UInt8>) -> String? {
    bytes.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
  }

  /// The value of a key that is not secret, or `nil` if the input does not contain it.
  func text(_ key: String) -> String? { texts[key]?.last }

  /// The values of a key that ends in `[]`.
  func all(_ key: String) -> [String] { texts[key] ?? [] }

  func secret(_ key: String) -> SecretBytes? { secrets[key] }
}
