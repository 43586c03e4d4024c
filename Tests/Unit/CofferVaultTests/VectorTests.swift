import CofferVaultFormat
import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// The vectors of `Tests/Vectors`: vaults, most of them damaged, and the outcome that each reader must have.
@Suite struct VectorTests {
  struct Vector: Decodable {
    struct Edit: Decodable {
      let offset: Int
      let delete: Int
      let insert: String

      func apply(to bytes: inout [UInt8]) throws {
        bytes.replaceSubrange(offset..<offset + delete, with: try Hex.bytes(insert))
      }
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
    struct Version: Decodable {
      let service: String
      let account: String
      let sequence: Int
      let stored: Int64
      let superseded: Int64
      let value: String?
      let valueLength: Int?
      let valueBlake2b256: String?
    }
    struct Removal: Decodable {
      let service: String
      let account: String
      let sequence: Int
      let removed: Int64
    }
    struct History: Decodable {
      let versions: Int
      let days: Int
    }
    struct Expectation: Decodable {
      let outcome: String
      let sequence: Int?
      let checkpoint: String?
      let items: [Item]?
      let versions: [Version]?
      let removed: [Removal]?
      let history: History?
      let lineage: Int?
    }
    let name: String
    let comment: String
    let vault: String
    let edits: [Edit]?
    let truncate: Int?
    let credential: Credential
    let limits: Limits?
    let now: Int64?
    let expect: Expectation

    var options: VaultOptions {
      var options = VaultOptions()
      if let memory = limits?.memoryKib { options.maximumPassphraseMemory = memory * 1024 }
      if let passes = limits?.passes { options.maximumPassphrasePasses = passes }
      return options
    }

    /// The bytes of the damaged vault.
    var bytes: [UInt8] {
      get throws {
        var bytes = try [UInt8](Data(contentsOf: VectorTests.directory.appending(path: vault)))
        for edit in (edits ?? []).reversed() { try edit.apply(to: &bytes) }
        if let truncate { bytes = Array(bytes[..<truncate]) }
        return bytes
      }
    }
  }

  struct Mismatch: Error, CustomStringConvertible {
    let description: String
  }

  static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
    .appending(path: "Vectors")

  @Test func everyVectorHasItsOutcome() throws {
    let vectors = try Self.vectors()
    #expect(vectors.count >= 1000)
    let scratch = try TemporaryDirectory()
    for vector in vectors {
      do { try run(vector, in: scratch) } catch {
        Issue.record("\(vector.name) (\(vector.comment)): \(error)")
      }
    }
    print("vectors: \(vectors.count)")
  }

  static func vectors() throws -> [Vector] {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .custom { path in
      // snake_case, except for the names of attributes.
      let name = path[path.count - 1].stringValue
      return CodingName(
        path.count > 1 && path[path.count - 2].stringValue == "attributes" ? name : camelCase(name))
    }
    return try decoder.decode(
      [Vector].self, from: Data(contentsOf: directory.appending(path: "vectors.json")))
  }

  /// Checks a vector on a copy of its vault.
  private func run(_ vector: Vector, in scratch: TemporaryDirectory) throws {
    let bytes = try vector.bytes
    let path = scratch.file("vector")
    try Data(bytes).write(to: URL(filePath: path))
    guard chmod(path, 0o600) == 0 else { throw Mismatch(description: "chmod failed") }

    // Without a time the vault has no limit of age.
    let environment = VaultEnvironment(now: { Timestamp.date(vector.now ?? .max) })
    let backend = VaultBackend(
      path: path, credentials: [VectorCredential(vector.credential)], options: vector.options,
      environment: environment)
    let report: VaultReport
    do throws(SecretError) {
      report = try backend.verify()
    } catch {
      guard Self.outcomes[error.code] == vector.expect.outcome else {
        throw Mismatch(description: "expected \(vector.expect.outcome), and got \(error.code): \(error)")
      }
      return
    }
    let outcome = report.isRecovered ? "recovered" : "ok"
    guard outcome == vector.expect.outcome else {
      throw Mismatch(description: "expected \(vector.expect.outcome), and got \(outcome)")
    }
    guard report.checkpoint == vector.expect.checkpoint,
      Checkpoint(report.checkpoint)?.sequence == vector.expect.sequence
    else {
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
    // A `Date` cannot be so exact that far from now.
    guard vector.now.map({ Timestamp.milliseconds(Timestamp.date($0)) == $0 }) ?? true else { return }
    try compareHistory(backend, vector.expect, environment)
  }

  private func compareHistory(
    _ backend: VaultBackend, _ expected: Vector.Expectation, _ environment: VaultEnvironment
  ) throws {
    let limit = try backend.historyLimit()
    guard limit.versions == expected.history?.versions ?? 0, limit.days == expected.history?.days ?? 0 else {
      throw Mismatch(description: "the history limit is \(limit)")
    }
    let removed = try backend.removedItems(inService: nil)
    guard removed.count == expected.removed?.count ?? 0 else {
      throw Mismatch(description: "the removed secrets are \(removed)")
    }
    for (found, expected) in zip(removed, expected.removed ?? []) {
      let newest = try backend.versions(of: found.identifier).first
      guard
        found.identifier == (try SecretIdentifier(service: expected.service, account: expected.account)),
        found.removed == Timestamp.date(expected.removed), newest?.kind == .removal,
        newest?.number == expected.sequence, newest?.date == found.removed
      else { throw Mismatch(description: "\(found) is not \(expected)") }
    }
    var expectedVersions = (expected.versions ?? [])[...]
    let names = try backend.items(inService: nil).map(\.identifier) + removed.map(\.identifier)
    for name in names.sorted() {
      let versions = try backend.versions(of: name)
      for (newer, version) in zip(versions, versions.dropFirst()) where version.kind == .earlier {
        guard let expected = expectedVersions.popFirst(),
          name == (try SecretIdentifier(service: expected.service, account: expected.account)),
          version.number == expected.sequence, version.date == Timestamp.date(expected.stored),
          newer.date == Timestamp.date(expected.superseded)
        else { throw Mismatch(description: "\(name) has the version \(version)") }
        try compare(
          value: backend.lookUp(name, version: version.number)?.array(), of: expected.account, expected.value,
          expected.valueLength, expected.valueBlake2b256)
      }
    }
    guard expectedVersions.isEmpty else { throw Mismatch(description: "missing: \(expectedVersions)") }
  }

  private func compare(
    _ item: SecretItem, _ expected: Vector.Item, value: [UInt8]?, namesCollide: Bool
  ) throws {
    // A `Date` has 53 bits of precision, so times far from now are rounded before they are compared.
    func date(_ milliseconds: Int64?) -> Date? { milliseconds.map(Timestamp.date) }
    let metadata = item.metadata
    guard item.identifier == (try SecretIdentifier(service: expected.service, account: expected.account)),
      metadata.label.map({ Array($0.utf8) }) == expected.label.map({ Array($0.utf8) }),
      metadata.created == date(expected.created), metadata.modified == date(expected.modified),
      metadata.expires == date(expected.expires),
      Set(metadata.attributes.keys) == Set(expected.attributes.keys),
      // A Swift dictionary treats two spellings of one text as one key and keeps the last.
      metadata.attributes == expected.attributes || namesCollide
    else { throw Mismatch(description: "\(item) is not \(expected)") }
    try compare(
      value: value, of: expected.account, expected.value, expected.valueLength, expected.valueBlake2b256)
  }

  private func compare(
    value: [UInt8]?, of account: String, _ expected: String?, _ length: Int?, _ hash: String?
  ) throws {
    if let expected {
      guard value == (try Hex.bytes(expected)) else { throw Mismatch(description: "the value of \(account)") }
    } else {
      guard let value, value.count == length,
        Sodium.hash(value.span, count: 32) == (try Hex.bytes(hash ?? ""))
      else { throw Mismatch(description: "the large value of \(account)") }
    }
  }

  /// The number of former master keys, which only an open vault shows.
  @Test func everyLineageHasItsLength() throws {
    let scratch = try TemporaryDirectory()
    let path = scratch.file("vector")
    for vector in try Self.vectors() where vector.expect.items != nil && vector.edits == nil {
      try Data(vector.bytes).write(to: URL(filePath: path))
      #expect(chmod(path, 0o600) == 0)
      let file = try VaultFile(path: path, environment: VaultEnvironment())
      let chain = CredentialChain(
        [VectorCredential(vector.credential)], options: vector.options, environment: VaultEnvironment())
      let vault = try UnlockedVault(file, keys: chain.unlock(file))
      let length = vault.base.settings.lineage.map { ($0.count - Layout.sealOverhead) / 32 } ?? 0
      #expect(length == vector.expect.lineage ?? 0, "\(vector.name)")
    }
  }

  static let outcomes: [SecretError.Code: String] = [
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

struct VectorCredential: VaultCredentialSource {
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
