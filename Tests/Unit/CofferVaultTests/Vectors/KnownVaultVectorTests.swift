import CofferCore
import CofferSimulation
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// The judgements of `Tests/Vectors/known_vaults.json`: a record of a place, a vault at the place, and the outcome that
/// each reader must have.
@Suite struct KnownVaultVectorTests {
  struct File: Decodable {
    struct Judgement: Decodable {
      struct Expectation: Decodable {
        let judgement: String
        let halfDamaged: Bool?
        let written: String?
        let syncFirst: Bool?
        let recordBlake2b256: String?
        let vaultWritten: String?
        let vaultRecordBlake2b256: String?

        enum CodingKeys: String, CodingKey {
          case judgement, written
          case halfDamaged = "half_damaged"
          case syncFirst = "sync_first"
          case recordBlake2b256 = "record_blake2b_256"
          case vaultWritten = "vault_written"
          case vaultRecordBlake2b256 = "vault_record_blake2b_256"
        }
      }
      let name: String
      let comment: String
      let record: String?
      let edits: [Vector.Edit]?
      let vaultRecord: String?
      let vaultEdits: [Vector.Edit]?
      let path: String
      let vector: String
      let expect: Expectation

      enum CodingKeys: String, CodingKey {
        case name, comment, record, edits, path, vector, expect
        case vaultRecord = "vault_record"
        case vaultEdits = "vault_edits"
      }
    }
    let records: [String: String]
    let judgements: [Judgement]
  }

  @Test func everyRecordHasItsJudgement() throws {
    let file = try JSONDecoder().decode(
      File.self, from: Data(contentsOf: Vector.directory.appending(path: "known_vaults.json")))
    #expect(file.judgements.count >= 100)
    let vectors = Dictionary(uniqueKeysWithValues: try Vector.all().map { ($0.name, $0) })
    for judgement in file.judgements {
      do {
        func record(_ name: String?, _ edits: [Vector.Edit]?) throws -> [UInt8]? {
          guard let name else { return nil }
          var bytes = try Hex.bytes(#require(file.records[name]))
          for edit in (edits ?? []).reversed() { try edit.apply(to: &bytes) }
          return bytes
        }
        try run(
          judgement, record(judgement.record, judgement.edits),
          record(judgement.vaultRecord, judgement.vaultEdits), #require(vectors[judgement.vector]))
      } catch { Issue.record("\(judgement.name) (\(judgement.comment)): \(error)") }
    }
  }

  private func run(
    _ judgement: File.Judgement, _ record: [UInt8]?, _ ofVault: [UInt8]?, _ vector: Vector
  ) throws {
    let disk = SimulatedDisk()
    func put(_ bytes: [UInt8], at path: String) throws {
      _ = try disk.locate(path, followingLink: true).directory.create(path)
      disk.overwrite(path, with: bytes)
    }
    func name(_ subject: [UInt8]) -> String {
      "known/" + BLAKE2b.hash(subject.span, count: 16).map { String(format: "%02x", $0) }.joined()
    }
    try put(vector.bytes(), at: judgement.path)
    let id = try vector.bytes()[28..<44].map { String(format: "%02x", $0) }.joined()
    let (vaultName, name) = (name([0] + Array(id.utf8)), name(Array(judgement.path.utf8)))
    if let record { try put(record, at: name) }
    if let ofVault { try put(ofVault, at: vaultName) }
    let (inode, vaultInode) = (disk.inode(of: name), disk.inode(of: vaultName))
    var options = vector.options
    options.knownVaultsDirectory = "known"
    let backend = VaultBackend(
      path: judgement.path, credentials: [VaultCredentialSource(vector.credential)], options: options,
      environment: VaultEnvironment(fileSystem: disk, user: 0, uptime: { .zero }, sleep: { _ in }))
    let expected = judgement.expect
    do throws(SecretError) {
      try backend.unlock()
    } catch {
      let found = Self.judgements[error.code] ?? Vector.outcomes[error.code] ?? "\(error)"
      guard found == expected.judgement else { throw Vector.Mismatch(description: found) }
      guard disk.content(of: name) == record, disk.content(of: vaultName) == ofVault else {
        throw Vector.Mismatch(description: "the record of a refused vault was changed")
      }
      return
    }
    guard ["first-use", "accepted"].contains(expected.judgement) else {
      throw Vector.Mismatch(description: "expected \(expected.judgement), and it was accepted")
    }
    func change(_ name: String, _ before: [UInt8]?, _ inode: UInt64?) -> String? {
      guard disk.inode(of: name) == inode else { return "anew" }
      guard let before, let after = disk.content(of: name), after != before else { return nil }
      return after[..<512] == before[..<512] ? "B" : "A"
    }
    let after = try #require(disk.content(of: name))
    let written = change(name, record, inode)
    guard written == expected.written else {
      throw Vector.Mismatch(description: "written: \(written ?? "nothing")")
    }
    guard try BLAKE2b.hash(after.span, count: 32) == Hex.bytes(expected.recordBlake2b256 ?? "") else {
      throw Vector.Mismatch(description: "the record has other bytes")
    }
    if written != "anew", disk.barriers(of: name) != (expected.syncFirst == true ? 1 : 0) {
      throw Vector.Mismatch(description: "there were \(disk.barriers(of: name)) barriers")
    }
    let vaultAfter = disk.content(of: vaultName)
    let digest = vaultAfter.map { BLAKE2b.hash($0.span, count: 32) }
    guard change(vaultName, ofVault, vaultInode) == expected.vaultWritten,
      try digest == expected.vaultRecordBlake2b256.map(Hex.bytes)
    else { throw Vector.Mismatch(description: "the record of the vault is another one") }
    guard try backend.notices().contains(.recordDamaged) == expected.halfDamaged else {
      throw Vector.Mismatch(description: "the damaged slot is not reported")
    }
  }

  private static let judgements: [SecretError.Code: String] = [
    .rolledBack: "rolled-back", .unexpectedVault: "another-vault", .unexpectedKey: "another-key",
    .unverifiable: "unverifiable-record",
  ]
}
