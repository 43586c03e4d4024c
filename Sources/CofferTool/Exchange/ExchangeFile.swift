internal import Coffer
internal import FoundationEssentials

/// The JSON file that `export` writes and `import` reads. Encoding and decoding take values out of guarded
/// memory.
///
/// ```
/// {
///   "coffer-secrets": 1,
///   "secrets": [
///     {
///       "service": "secret", "account": "github-token",
///       "value": "ghp_…",                                  or "base64": "…" if the value is not UTF-8
///       "label": "…", "created": "2026-01-31T12:00:00Z", "expires": "…", "attributes": { "name": "text" }
///     }
///   ]
/// }
/// ```
///
/// The fields of the last line are optional, and so is `service`, whose default is `--service`. Other fields
/// are not allowed.
struct ExchangeFile: Codable {
  var version = 1
  var secrets: [Entry]

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
    private struct AnyKey: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init?(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    struct UnknownKey: Error {}

    init(_ secret: ExchangedSecret) throws(SecretError) {
      service = secret.identifier.service
      account = secret.identifier.account
      let data = secret.value.bytes.withBytes { $0.withUnsafeBytes { Data($0) } }
      if let text = String(validating: data, as: UTF8.self) { value = text } else { base64 = data }
      label = secret.metadata?.label
      created = secret.metadata?.created
      expires = secret.metadata?.expires
      let attributes = secret.metadata?.attributes ?? [:]
      self.attributes = attributes.isEmpty ? nil : attributes
    }

    init(from decoder: any Decoder) throws {
      let known = Set(CodingKeys.allCases.map(\.stringValue))
      let all = try decoder.container(keyedBy: AnyKey.self).allKeys
      guard all.allSatisfy({ known.contains($0.stringValue) }) else { throw UnknownKey() }
      let container = try decoder.container(keyedBy: CodingKeys.self)
      service = try container.decodeIfPresent(String.self, forKey: .service)
      account = try container.decode(String.self, forKey: .account)
      value = try container.decodeIfPresent(String.self, forKey: .value)
      base64 = try container.decodeIfPresent(Data.self, forKey: .base64)
      label = try container.decodeIfPresent(String.self, forKey: .label)
      created = try container.decodeIfPresent(Date.self, forKey: .created)
      expires = try container.decodeIfPresent(Date.self, forKey: .expires)
      attributes = try container.decodeIfPresent([String: String].self, forKey: .attributes)
    }
  }

  init(_ secrets: [ExchangedSecret]) throws(SecretError) {
    self.secrets = try secrets.map { secret throws(SecretError) in try Entry(secret) }
  }

  func text() throws -> SecretBytes {
    SecretBytes(copying: try Output.json(self, [.prettyPrinted]))
  }

  /// The secrets in `text`. Throws a failure that names the first invalid entry, without its contents.
  static func secrets(
    in text: borrowing SecretBytes, of file: String, service: String
  ) throws -> [ExchangedSecret] {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    let contents: ExchangeFile
    do {
      contents = try decoder.decode(
        ExchangeFile.self, from: text.withBytes { $0.withUnsafeBytes { Data($0) } })
    } catch let error as DecodingError {
      throw failure(
        file, error.entry.map { "entry \($0)" } ?? "the file", "does not have the form that export writes")
    } catch is Entry.UnknownKey {
      throw failure(file, "an entry", "has an unknown field")
    }
    guard contents.version == 1 else { throw failure(file, "the file", "has a version other than 1") }
    var seen: Set<SecretIdentifier> = []
    return try contents.secrets.enumerated().map { index, entry in
      let place = "entry \(index + 1)"
      let bytes: SecretBytes
      switch (entry.value, entry.base64) {
      case (let value?, nil): bytes = SecretBytes(copying: value)
      case (nil, let data?): bytes = SecretBytes(copying: Array(data))
      default: throw failure(file, place, "does not have exactly one of value and base64")
      }
      let identifier = try SecretIdentifier(service: entry.service ?? service, account: entry.account)
      guard seen.insert(identifier).inserted else {
        throw failure(file, place, "repeats the secret “\(identifier.account)”")
      }
      var metadata = SecretMetadata(label: entry.label, created: entry.created, expires: entry.expires)
      metadata.attributes = entry.attributes ?? [:]
      try metadata.validate()
      return ExchangedSecret(identifier: identifier, value: SharedSecret(bytes), metadata: metadata)
    }
  }

  private static func failure(_ file: String, _ place: String, _ text: String) -> Failure {
    Failure(.damaged, "\(file) cannot be imported: \(place) \(text). Nothing was imported.")
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
