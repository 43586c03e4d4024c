import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Foundation
import Testing

/// The lookups of `Tests/Vectors/lookups.json`: what a reader of one secret finds, who checks less than one of all.
@Suite struct LookupVectorTests {
  private struct Content: Decodable {
    /// The vaults of which each lookup is refused, by the outcome.
    let refused: [String: [String]]
    let lookups: [Case]
  }
  private struct Case: Decodable {
    let vector: String
    let lookups: [Lookup]
  }
  private struct Lookup: Decodable {
    let service: String?
    let account: String
    /// Several results are allowed where a lookup may check more than it must.
    let expect: [Result]
  }
  private enum Result: Decodable {
    /// An outcome, or that the secret is missing.
    case named(String)
    case value(Value)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let name = try? container.decode(String.self) {
        self = .named(name)
      } else {
        self = .value(try container.decode(Value.self))
      }
    }

    func matches(_ found: Found) throws -> Bool {
      switch (self, found) {
      case (.named(let name), .value(nil)): name == "missing"
      case (.named(let name), .refused(let code)): name == Vector.outcomes[code]
      case (.value(let value), .value(let found?)): try value.matches(found)
      case (.value, _), (.named, .value): false
      }
    }
  }
  private struct Value: Decodable {
    let value: String?
    let valueLength: Int?
    let valueBlake2b256: String?

    func matches(_ found: [UInt8]) throws -> Bool {
      if let value { return try found == Hex.bytes(value) }
      let hash = try Hex.bytes(valueBlake2b256 ?? "")
      return found.count == valueLength && BLAKE2b.hash(found.span, count: 32) == hash
    }
  }
  private enum Found: Equatable {
    case value([UInt8]?)
    case refused(SecretError.Code)
  }

  @Test func everyLookupHasItsResult() throws {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let url = Vector.directory.appending(path: "lookups.json")
    let content = try decoder.decode(Content.self, from: Data(contentsOf: url))
    let vectors = Dictionary(uniqueKeysWithValues: try Vector.all().map { ($0.name, $0) })
    let refused = content.refused.flatMap { outcome, names in
      names.map { name in
        Case(vector: name, lookups: [Lookup(service: nil, account: "a", expect: [.named(outcome)])])
      }
    }
    #expect(refused.count >= 600 && content.lookups.count >= 500)
    let scratch = try TemporaryDirectory()
    for one in refused + content.lookups {
      let vector = try #require(vectors[one.vector])
      do { try check(one, vector, in: scratch) } catch { Issue.record("\(vector.name) (\(vector.comment)): \(error)") }
    }
  }

  private func check(_ one: Case, _ vector: Vector, in scratch: TemporaryDirectory) throws {
    let (bytes, path) = (try vector.bytes(), scratch.file("vault"))
    try Data(bytes).write(to: URL(filePath: path))
    guard chmod(path, 0o600) == 0 else { throw Vector.Mismatch(description: "chmod failed") }
    let backend = VaultBackend(
      path: path, credentials: [VaultCredentialSource(vector.credential)], options: vector.options)
    // A vault that only an identity opens must be trusted first. If that fails, so does the lookup.
    if vector.credential.identity != nil { _ = try? backend.trust() }
    for lookup in one.lookups {
      let name = try SecretIdentifier(service: lookup.service ?? "com.example.app", account: lookup.account)
      let found = Self.found { () throws(SecretError) in try backend.lookUp(name) }
      guard try lookup.expect.contains(where: { try $0.matches(found) }) else {
        throw Vector.Mismatch(description: "\(name.account): \(found)")
      }
      // The same with the metadata.
      guard Self.found({ () throws(SecretError) in try backend.secret(name)?.value }) == found else {
        throw Vector.Mismatch(description: "\(name.account) has another result with its metadata")
      }
    }
    guard try [UInt8](Data(contentsOf: URL(filePath: path))) == bytes else {
      throw Vector.Mismatch(description: "the file was changed by reading it")
    }
  }

  private static func found(_ read: () throws(SecretError) -> SecretBytes?) -> Found {
    do throws(SecretError) { return .value(try read()?.array()) } catch { return .refused(error.code) }
  }
}
