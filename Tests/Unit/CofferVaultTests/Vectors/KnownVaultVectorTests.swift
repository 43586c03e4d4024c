import CofferCore
import CofferSimulation
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// The judgements of `Tests/Vectors/known_vaults.json`: a record of a place, a vault at the place, and the
/// outcome that each reader must have.
@Suite struct KnownVaultVectorTests {
  struct File: Decodable {
    struct Judgement: Decodable {
      struct Expectation: Decodable {
        let judgement: String
        let halfDamaged: Bool?
        let written: String?
        let syncFirst: Bool?
        let recordBlake2b256: String?

        enum CodingKeys: String, CodingKey {
          case judgement, written
          case halfDamaged = "half_damaged"
          case syncFirst = "sync_first"
          case recordBlake2b256 = "record_blake2b_256"
        }
      }
      let name: String
      let comment: String
      let record: String?
      let edits: [Vector.Edit]?
      let path: String
      let vector: String
      let expect: Expectation
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
        var record = try judgement.record.map { try Hex.bytes(#require(file.records[$0])) }
        if record != nil {
          for edit in (judgement.edits ?? []).reversed() { try edit.apply(to: &record!) }
        }
        try run(judgement, record, #require(vectors[judgement.vector]))
      } catch { Issue.record("\(judgement.name) (\(judgement.comment)): \(error)") }
    }
  }

  private func run(
    _ judgement: File.Judgement, _ record: [UInt8]?, _ vector: Vector
  ) throws {
    let disk = SimulatedDisk()
    func put(_ bytes: [UInt8], at path: String) throws {
      _ = try disk.locate(path, followingLink: true).directory.create(path)
      disk.overwrite(path, with: bytes)
    }
    let hash = BLAKE2b.hash(Array(judgement.path.utf8).span, count: 16)
    let name = "known/" + hash.map { String(format: "%02x", $0) }.joined()
    try put(vector.bytes(), at: judgement.path)
    if let record { try put(record, at: name) }
    let inode = disk.inode(of: name)
    var options = vector.options
    options.knownVaultsDirectory = "known"
    let backend = VaultBackend(
      path: judgement.path, credentials: [VectorCredential(vector.credential)], options: options,
      environment: VaultEnvironment(fileSystem: disk, user: 0, uptime: { .zero }, sleep: { _ in }))
    let expected = judgement.expect
    do throws(SecretError) {
      try backend.unlock()
    } catch {
      let found = Self.judgements[error.code] ?? Vector.outcomes[error.code] ?? "\(error)"
      guard found == expected.judgement else { throw Vector.Mismatch(description: found) }
      guard disk.content(of: name) == record else {
        throw Vector.Mismatch(description: "the record of a refused vault was changed")
      }
      return
    }
    guard ["first-use", "accepted"].contains(expected.judgement) else {
      throw Vector.Mismatch(description: "expected \(expected.judgement), and it was accepted")
    }
    let after = try #require(disk.content(of: name))
    let before = record ?? []
    let written: String? =
      if disk.inode(of: name) != inode {
        "anew"
      } else if after == before {
        nil
      } else {
        after[..<512] == before[..<512] ? "B" : "A"
      }
    guard written == expected.written else {
      throw Vector.Mismatch(description: "written: \(written ?? "nothing")")
    }
    guard try BLAKE2b.hash(after.span, count: 32) == Hex.bytes(expected.recordBlake2b256 ?? "") else {
      throw Vector.Mismatch(description: "the record has other bytes")
    }
    if written != "anew", disk.barriers(of: name) != (expected.syncFirst == true ? 1 : 0) {
      throw Vector.Mismatch(description: "there were \(disk.barriers(of: name)) barriers")
    }
    guard try backend.condition().isRecordDamaged == expected.halfDamaged else {
      throw Vector.Mismatch(description: "the damaged slot is not reported")
    }
  }

  private static let judgements: [SecretError.Code: String] = [
    .rolledBack: "rolled-back", .unexpectedVault: "another-vault", .unexpectedKey: "another-key",
    .unverifiable: "unverifiable-record",
  ]
}
