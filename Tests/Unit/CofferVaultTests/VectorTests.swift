import CofferVaultFormat
import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// Every vector of `Tests/Vectors`: a vault, perhaps one damage to it, and what a reader must make of it.
@Suite struct VectorTests {
  struct Vector: Decodable {
    struct Edit: Decodable {
      let offset: Int
      let delete: Int
      let insert: String
    }
    struct Credential: Decodable {
      let keyText: String?
      let passphrase: String?
    }
    struct Limits: Decodable {
      let memoryKib: Int?
      let passes: Int?
    }
    struct Item: Decodable, Equatable {
      let service: String
      let account: String
      let label: String?
      let created: Int64
      let modified: Int64
      let expires: Int64?
      let attributes: [String: String]
      let value: String?
      let valueLength: Int?
      let valueBlake2b256: String?
    }
    struct Expectation: Decodable {
      let outcome: String
      let checkpoint: String?
      let items: [Item]?
    }
    let name: String
    let comment: String
    let vault: String
    let edits: [Edit]?
    let truncate: Int?
    let credential: Credential
    let limits: Limits?
    let expect: Expectation
  }

  struct Mismatch: Error, CustomStringConvertible {
    let description: String
  }

  static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
    .appending(path: "Vectors")

  @Test func everyVectorHasItsOutcome() throws {
    let vectors = try Self.vectors(in: Self.directory)
    #expect(vectors.count >= 250)
    let scratch = try TemporaryDirectory()
    for vector in vectors {
      do { try run(vector, in: scratch) } catch {
        Issue.record("\(vector.name) (\(vector.comment)): \(error)")
      }
    }
    print("vectors: \(vectors.count)")
  }

  /// What a release wrote is read for ever, and written to.
  @Test(arguments: ["format-1"])
  func vaultsOfAReleaseStayReadableAndWritable(_ folder: String) throws {
    let folder = Self.directory.appending(path: folder)
    let vectors = try Self.vectors(in: folder)
    #expect(!vectors.isEmpty)
    for vector in vectors {
      let scratch = try TemporaryDirectory()
      let count = try run(vector, from: folder, in: scratch).verify().secretCount
      let every = vectors.filter { $0.vault == vector.vault }.map { VectorCredential($0.credential) }
      let backend = VaultBackend(path: scratch.file("vector"), credentials: every)
      try backend.set("from now", [1])
      try backend.compact()
      try backend.rekey()
      try backend.set("from now", [2])
      let again = VaultBackend(
        path: scratch.file("vector"), credentials: [VectorCredential(vector.credential)])
      #expect(try again.get("from now") == [2], "\(vector.name)")
      #expect(try again.verify().secretCount == count + 1, "\(vector.name)")
      for item in vector.expect.items ?? [] {
        let found = try again.lookUp(SecretIdentifier(service: item.service, account: item.account))
        try compare(value: found?.array(), item)
      }
    }
  }

  private static func vectors(in folder: URL) throws -> [Vector] {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .custom { path in
      // snake_case, but for the attributes' own names.
      let name = path[path.count - 1].stringValue
      return CodingName(
        path.count > 1 && path[path.count - 2].stringValue == "attributes" ? name : camelCase(name))
    }
    return try decoder.decode([Vector].self, from: Data(contentsOf: folder.appending(path: "vectors.json")))
  }

  /// Tries a vector on a copy of its vault, and gives what has opened the copy.
  @discardableResult
  private func run(
    _ vector: Vector, from folder: URL = directory, in scratch: TemporaryDirectory
  ) throws -> VaultBackend {
    var bytes = try [UInt8](Data(contentsOf: folder.appending(path: vector.vault)))
    for edit in (vector.edits ?? []).reversed() {
      bytes.replaceSubrange(edit.offset..<edit.offset + edit.delete, with: try Hex.bytes(edit.insert))
    }
    if let size = vector.truncate { bytes = Array(bytes[..<size]) }
    let path = scratch.file("vector")
    try Data(bytes).write(to: URL(filePath: path))
    guard chmod(path, 0o600) == 0 else { throw Mismatch(description: "chmod failed") }

    var options = VaultOptions()
    if let memory = vector.limits?.memoryKib { options.maximumPassphraseMemory = memory * 1024 }
    if let passes = vector.limits?.passes { options.maximumPassphrasePasses = passes }
    let backend = VaultBackend(
      path: path, credentials: [VectorCredential(vector.credential)], options: options)
    let report: VaultReport
    do throws(SecretError) {
      report = try backend.verify()
    } catch {
      guard Self.outcomes[error.code] == vector.expect.outcome else {
        throw Mismatch(description: "expected \(vector.expect.outcome), and got \(error.code): \(error)")
      }
      // What fails as a whole may still be read in part, but never gives another item than one stored.
      return backend
    }
    let outcome = report.isRecovered ? "recovered" : "ok"
    guard outcome == vector.expect.outcome else {
      throw Mismatch(description: "expected \(vector.expect.outcome), and got \(outcome)")
    }
    guard report.checkpoint == vector.expect.checkpoint else {
      throw Mismatch(description: "the checkpoint is \(report.checkpoint)")
    }
    let items = try backend.items(inService: nil)
    guard items.count == vector.expect.items?.count else {
      throw Mismatch(description: "there are \(items.count) items")
    }
    for (item, expected) in zip(items, vector.expect.items ?? []) {
      try compare(
        item, expected, value: backend.lookUp(item.identifier)?.array(),
        namesCollide: vector.name == "ok-attributes-nfc-nfd")
    }
    // Reading changes nothing.
    guard try [UInt8](Data(contentsOf: URL(filePath: path))) == bytes else {
      throw Mismatch(description: "the file was changed by reading it")
    }
    return backend
  }

  private func compare(
    _ item: SecretItem, _ expected: Vector.Item, value: [UInt8]?, namesCollide: Bool
  ) throws {
    // A `Date` has 53 bits: times far from now are compared as it can hold them.
    func date(_ milliseconds: Int64?) -> Date? { milliseconds.map(Timestamp.date) }
    let metadata = item.metadata
    guard item.identifier == (try SecretIdentifier(service: expected.service, account: expected.account)),
      metadata.label.map({ Array($0.utf8) }) == expected.label.map({ Array($0.utf8) }),
      metadata.created == date(expected.created), metadata.modified == date(expected.modified),
      metadata.expires == date(expected.expires),
      Set(metadata.attributes.keys) == Set(expected.attributes.keys),
      // Two spellings of one text are one key to a Swift dictionary, which keeps the last.
      metadata.attributes == expected.attributes || namesCollide
    else { throw Mismatch(description: "\(item) is not \(expected)") }
    try compare(value: value, expected)
  }

  private func compare(value: [UInt8]?, _ expected: Vector.Item) throws {
    if let text = expected.value {
      guard value == (try Hex.bytes(text)) else {
        throw Mismatch(description: "the value of \(expected.account)")
      }
    } else {
      guard let value, value.count == expected.valueLength,
        Sodium.hash(value.span, count: 32) == (try Hex.bytes(expected.valueBlake2b256 ?? ""))
      else { throw Mismatch(description: "the large value of \(expected.account)") }
    }
  }

  private static let outcomes: [SecretError.Code: String] = [
    .notAVault: "not-a-vault", .unsupportedVersion: "unsupported-version", .tampered: "tampered",
    .wrongKey: "wrong-key", .costLimitExceeded: "cost-limit-exceeded",
  ]

  struct KeyTextVector: Decodable {
    struct Expectation: Decodable {
      let outcome: String
      let key: String?
    }
    let name: String
    let text: String
    let expect: Expectation
  }

  @Test func everyKeyTextHasItsOutcome() throws {
    let vectors = try JSONDecoder().decode(
      [KeyTextVector].self, from: Data(contentsOf: Self.directory.appending(path: "key_text.json")))
    #expect(vectors.count >= 10)
    for vector in vectors {
      let expected = try Hex.bytes(vector.expect.key ?? "")
      do throws(SecretError) {
        let key = try VaultKey.parse(SecretBytes(copying: vector.text))
        #expect(vector.expect.outcome == "ok", "\(vector.name)")
        #expect(key.array() == expected, "\(vector.name)")
      } catch {
        #expect(error.code == .invalidKey && vector.expect.outcome == "invalid-key", "\(vector.name)")
      }
    }
  }
}

private struct VectorCredential: VaultCredentialSource {
  let name = "the vector's credential"
  let given: VectorTests.Vector.Credential

  init(_ given: VectorTests.Vector.Credential) { self.given = given }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    if let text = given.keyText { return .key(try VaultKey.parse(SecretBytes(copying: text))) }
    return given.passphrase.map { .passphrase(SecretBytes(copying: $0)) }
  }
}

enum Hex {
  struct Malformed: Error {}
  static func bytes(_ text: String) throws -> [UInt8] {
    let digits = try text.utf8.map { digit -> UInt8 in
      switch digit {
      case 0x30...0x39: digit - 0x30
      case 0x61...0x66: digit - 0x61 + 10
      default: throw Malformed()
      }
    }
    guard digits.count % 2 == 0 else { throw Malformed() }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}

private struct CodingName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }
  init(_ name: String) { stringValue = name }
  init?(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { nil }
}

private func camelCase(_ name: String) -> String {
  let words = name.split(separator: "_")
  return words.dropFirst().reduce(String(words.first ?? "")) {
    $0 + $1.prefix(1).uppercased() + $1.dropFirst()
  }
}
