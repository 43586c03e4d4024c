import CofferCore
import CofferVault
import Foundation

/// A vault of `Tests/Vectors`, most of them damaged, and the outcome that each reader must have.
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
    let identity: String?
  }
  struct Limits: Decodable {
    let memoryKib: Int?
    let workKib: Int?
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
    let pin: String?
    let items: [Item]?
    let versions: [Version]?
    let removed: [Removal]?
    let history: History?
    let lineage: Int?
    let formerSlots: [FormerSlot]?
    let leases: Leases?
  }
  struct Leases: Decodable, Equatable {
    struct Lease: Decodable, Equatable {
      let lookupId: String
      let taking: String
      let end: Int
    }
    let counter: Int
    let held: [Lease]
  }
  struct FormerSlot: Decodable, Equatable {
    let slotId: String
    let type: UInt8
    let isTrace: Int
    let recipient: String
    let created: Int64
    let removed: Int
    let removedTime: Int64
    let label: String
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
    if let work = limits?.workKib { options.maximumPassphraseWork = work * 1024 }
    return options
  }

  /// The bytes of the damaged vault. Its base file is in `folder`.
  func bytes(in folder: URL = directory) throws -> [UInt8] {
    var bytes = try [UInt8](Data(contentsOf: folder.appending(path: vault)))
    for edit in (edits ?? []).reversed() { try edit.apply(to: &bytes) }
    if let truncate { bytes = Array(bytes[..<truncate]) }
    return bytes
  }

  struct Mismatch: Error, CustomStringConvertible {
    let description: String
  }

  static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Vectors")

  /// The vectors of a folder.
  static func all(in folder: URL = directory) throws -> [Vector] {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .custom { path in
      // snake_case, except for the names of attributes.
      let name = path[path.count - 1].stringValue
      return CodingName(
        path.count > 1 && path[path.count - 2].stringValue == "attributes" ? name : camelCase(name))
    }
    return try decoder.decode(
      [Vector].self, from: Data(contentsOf: folder.appending(path: "vectors.json")))
  }

  static let outcomes: [SecretError.Code: String] = [
    .notAVault: "not-a-vault", .unsupportedVersion: "unsupported-version", .tampered: "tampered",
    .wrongKey: "wrong-key", .costLimitExceeded: "cost-limit-exceeded",
  ]
}

extension VaultCredentialSource {
  init(_ given: Vector.Credential) {
    self.init("the vector's credential") { _ throws(SecretError) in
      if let text = given.keyText { return .key(try VaultKey.parse(SecretBytes(text))) }
      if let text = given.identity { return .identities(try VaultIdentity.parse(SecretBytes(text))) }
      return given.passphrase.map { .passphrase(SecretBytes($0)) }
    }
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
