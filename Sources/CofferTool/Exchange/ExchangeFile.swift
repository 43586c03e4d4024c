internal import Coffer
internal import FoundationEssentials

/// The JSON file that `export` writes and `import` reads. Reading takes values out of guarded memory.
///
/// ```
/// {
///   "coffer-secrets": 1,
///   "secrets": [
///     {"account":"github-token","attributes":{"name":"text"},"created":"2026-01-31T12:00:00Z","expires":"…",
///      "label":"…","service":"secret","value":"ghp_…"}      or "base64":"…" if the value is not UTF-8
///   ]
/// }
/// ```
///
/// All fields but `account` and the value are optional; `service` defaults to `--service`. No others are allowed.
struct ExchangeFile: Decodable {
  let version: Int
  let secrets: [Entry]

  private enum CodingKeys: String, CodingKey {
    case version = "coffer-secrets"
    case secrets
  }

  struct Entry: Codable {
    var service: String?
    var account: String
    var value: String?
    var base64: Data?
    var label: String?
    var created: Date?
    var expires: Date?
    var attributes: [String: String]?

    private enum CodingKeys: CodingKey, CaseIterable {
      case service, account, value, base64, label, created, expires, attributes
    }

    static let fields = Set(CodingKeys.allCases.map(\.stringValue))

    /// The secret without its value.
    init(_ secret: ExchangedSecret) {
      (service, account) = (secret.identifier.service, secret.identifier.account)
      (label, created, expires) = (secret.metadata?.label, secret.metadata?.created, secret.metadata?.expires)
      let attributes = secret.metadata?.attributes ?? [:]
      self.attributes = attributes.isEmpty ? nil : attributes
    }
  }

  /// The names of the entries' fields. Decoding an entry would ignore an unknown one.
  private struct Names: Decodable {
    struct Anything: Decodable {
      init(from decoder: any Decoder) {}
    }
    let secrets: [[String: Anything]]
  }

  /// The text for `secrets`: a line for each.
  static func text(of secrets: [ExchangedSecret]) throws -> SecretBytes {
    let entries = try secrets.map { secret in
      // Without the brace and the line feed at its end.
      let fields = try Output.json(Entry(secret), []).dropLast(2)
      return (fields + (secret.value.withBytes({ $0.isUTF8 }) ? ",\"value\":" : ",\"base64\":"), secret.value)
    }
    return SecretWriter.bytes { writer in
      writer.append("{\n  \"coffer-secrets\": 1,\n  \"secrets\": [")
      for (index, (fields, value)) in entries.enumerated() {
        writer.append((index == 0 ? "\n    " : ",\n    ") + fields)
        value.withBytes { bytes in
          if let text = try? UTF8Span(validating: bytes) {
            writer.appendJSON(text)
          } else {
            writer.append("\"")
            writer.append(value.base64())
            writer.append("\"")
          }
        }
        writer.append("}")
      }
      writer.append("\n  ]\n}\n")
    }
  }

  /// The secrets in `text`. Throws a failure that names the first invalid entry, without its contents.
  static func secrets(in text: SecretBytes, of file: String, service: String) throws -> [ExchangedSecret] {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    let contents: ExchangeFile
    do {
      let data = text.withBytes { $0.withUnsafeBytes { Data($0) } }
      let entries = try decoder.decode(Names.self, from: data).secrets
      guard entries.allSatisfy({ Entry.fields.isSuperset(of: $0.keys) }) else {
        throw failure(file, "an entry", "has an unknown field")
      }
      contents = try decoder.decode(ExchangeFile.self, from: data)
    } catch let error as DecodingError {
      throw failure(file, error.entry.map { "entry \($0)" } ?? "the file", "does not have the form that export writes")
    }
    guard contents.version == 1 else { throw failure(file, "the file", "has a version other than 1") }
    var seen: Set<SecretIdentifier> = []
    return try contents.secrets.enumerated().map { index, entry in
      let place = "entry \(index + 1)"
      let bytes: SecretBytes
      switch (entry.value, entry.base64) {
      case (let value?, nil): bytes = SecretBytes(value)
      case (nil, let data?): bytes = SecretBytes(Array(data))
      default: throw failure(file, place, "does not have exactly one of value and base64")
      }
      let identifier = try SecretIdentifier(service: entry.service ?? service, account: entry.account)
      guard seen.insert(identifier).inserted else {
        throw failure(file, place, "repeats the secret “\(identifier.account)”")
      }
      var metadata = SecretMetadata(label: entry.label, expires: entry.expires, attributes: entry.attributes ?? [:])
      metadata.created = entry.created
      try metadata.validate()
      return ExchangedSecret(identifier: identifier, value: bytes, metadata: metadata)
    }
  }

  private static func failure(_ file: String, _ place: String, _ text: String) -> Failure {
    Failure(.damaged, "\(file) cannot be imported: \(place) \(text).")
  }
}

extension DecodingError {
  /// The number, from 1 on, of the entry that is invalid.
  fileprivate var entry: Int? {
    switch self {
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
      .dataCorrupted(let context):
      context.codingPath.lazy.compactMap(\.intValue).first.map { $0 + 1 }
    @unknown default: nil
    }
  }
}
