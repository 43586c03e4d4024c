import CofferCore
import CofferTestSupport
import CofferVaultFormat
import Foundation
import Testing

@testable import CofferVault

/// Merges of the second implementation, made again.
@Suite struct MergeInteroperabilityTests {
  /// The second implementation makes random merges, and this one makes each of them again.
  @Test(.needs("python3", "/usr/lib/python3/dist-packages/nacl"))
  func bothImplementationsMergeAlike() throws {
    let directory = try TemporaryDirectory()
    let cases = directory.file("cases")
    try FileManager.default.createDirectory(atPath: cases, withIntermediateDirectories: false)
    let environment = ProcessInfo.processInfo.environment
    let script = Vector.directory.appending(path: "merge_causality.py").path()
    let command = [
      "/usr/bin/python3", script, "--merges", environment["COFFER_MERGES"] ?? "300", "--seed",
      environment["COFFER_MERGE_SEED"] ?? "1", "--write", cases,
    ]
    let result = try ChildProcess.run(command, environment: environment)
    #expect(result.status == 0, "\(result.errorText)")
    var outcomes: [String: Int] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: cases).sorted() {
      let vectors = try MergeVectors(from: URL(filePath: "\(cases)/\(name)"))
      for one in vectors.cases { outcomes[try vectors.check(one, in: directory, name), default: 0] += 1 }
    }
    #expect(outcomes.count == 3, "\(outcomes)")
  }

  @Test func everyMergeHasItsResult() throws {
    let vectors = try MergeVectors(from: Vector.directory.appending(path: "merges.json"))
    #expect(vectors.cases.count >= 110)
    let directory = try TemporaryDirectory()
    var outcomes: Set<String> = []
    for one in vectors.cases { outcomes.insert(try vectors.check(one, in: directory, "\(one.name) (\(one.comment))")) }
    #expect(outcomes.count == 9, "\(outcomes)")
  }
}

/// The content of `Tests/Vectors/merges.json`.
private struct MergeVectors: Decodable {
  struct File: Decodable {
    let vault: String?
    let edits: [Vector.Edit]
  }
  struct Case: Decodable {
    let name, comment, ours, theirs: String
    let ancestor: String?
    let undoes: Bool?
    let time: Int64
    let expect: MergeExpectation
  }
  let credential: Vector.Credential
  let files: [String: File]
  let cases: [Case]

  init(from url: URL) throws {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    self = try decoder.decode(Self.self, from: Data(contentsOf: url))
  }

  private func bytes(_ name: String) throws -> [UInt8] {
    let file = try #require(files[name])
    var bytes: [UInt8] = []
    if let vault = file.vault {
      let isListed = files[vault] != nil
      bytes = try isListed ? self.bytes(vault) : [UInt8](Data(contentsOf: Vector.directory.appending(path: vault)))
    }
    for edit in file.edits.reversed() { try edit.apply(to: &bytes) }
    return bytes
  }

  /// Merges the files of the case, and compares the result. Returns the outcome.
  func check(_ one: Case, in directory: TemporaryDirectory, _ comment: String) throws -> String {
    let (ours, theirs) = (try bytes(one.ours), try bytes(one.theirs))
    let path = directory.file("ours")
    try Data(ours).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let backend = VaultBackend(
      path: path, credentials: [VaultCredentialSource(credential)], options: VaultOptions(),
      environment: VaultEnvironment(now: { Timestamp.date(one.time) }))
    let ancestor = try one.ancestor.map { VaultCopy(try bytes($0), named: "ancestor") }
    var outcome = ""
    do throws(SecretError) {
      let report = try backend.merge(
        with: VaultCopy(theirs, named: "theirs"), ancestor: ancestor, undoing: one.undoes ?? false)
      outcome = Self.outcomes[report.outcome] ?? ""
      if report.outcome == .merged {
        let found = try backend.read { vault throws(SecretError) in
          try MergeExpectation(vault, report, undoes: one.undoes ?? false)
        }
        #expect(found == one.expect, "\(comment)")
        _ = try backend.verify()
      }
    } catch {
      outcome = Self.refusals[error.code] ?? "\(error)"
    }
    #expect(outcome == one.expect.outcome, "\(comment)")
    let file = try [UInt8](Data(contentsOf: URL(filePath: path)))
    if outcome == "theirs" {
      #expect(file == Array(theirs.prefix(file.count)), "\(comment)")
    } else {
      #expect((file == ours) == (outcome != "merged"), "\(comment)")
    }
    return outcome
  }

  private static let outcomes: [MergeReport.Outcome: String] = [
    .unchanged: "unchanged", .replaced: "theirs", .merged: "merged",
  ]
  private static let refusals: [SecretError.Code: String] = [
    .unexpectedVault: "another-vault", .unexpectedKey: "another-key", .rolledBack: "rolled-back", .denied: "read-only",
    .notAVault: "not-a-vault", .tampered: "tampered",
  ]
}

/// What a merge must be. What is empty is missing.
private struct MergeExpectation: Decodable, Equatable {
  struct Entry: Decodable, Equatable {
    let account: String
    let sequence: Int
    let time: Int64
    let created: Int64?
    let value: String?
    let conflict, twin: Int?
    let keepsNothing, keptNothing: Bool?
    let origin: Vector.Pair?
    let fields: [Vector.Pair]?
  }
  let outcome: String
  let sequence, floor: Int?
  let recent, taken, rootFields: [Vector.Pair]?
  let history: Vector.HistorySetting?
  let records: [Entry]?
  let slots: [String]?
  let formerSlots: [Vector.FormerSlot]?
  let compatible: UInt32?
  let erased, leftOut, takenBack: [String]?

  init(_ vault: VaultSnapshot, _ report: MergeReport, undoes: Bool) throws(SecretError) {
    outcome = "merged"
    let (header, settings) = (vault.file.header, vault.base.settings)
    (sequence, floor) = (vault.state.sequence, vault.base.recent.floor)
    recent = try vault.recentChanges().map(Vector.Pair.init)
    taken = settings.taken.map(Vector.Pair.init).unlessEmpty
    rootFields = try vault.encodedRootFields().filter { $0.type > 4 }.map(Vector.Pair.init).unlessEmpty
    history = Vector.HistorySetting(settings.history)
    var records: [Entry] = []
    try vault.forEachSecret { entries throws(SecretError) in
      for entry in entries { records.append(try Self.entry(entry, of: vault)) }
    }
    self.records = records
    slots = header.slots.map { Array($0.bytes).hex }
    formerSlots = settings.formerSlots.map(Vector.FormerSlot.init).unlessEmpty
    compatible = header.compatible == 0 ? nil : header.compatible
    erased = report.erased.map(\.account).sorted().unlessEmpty
    leftOut = report.leftOut.map(\.account).sorted().unlessEmpty
    takenBack = undoes ? nil : report.takenBack.map(\.identifier.account).sorted().unlessEmpty
  }

  private static func entry(_ entry: BlockEntry, of vault: VaultSnapshot) throws(SecretError) -> Entry {
    let (record, name, encoded) = (entry.record, try entry.record.identifier(), try entry.record.encoded())
    let isPut = !entry.isRemoval
    return Entry(
      account: name.account, sequence: record.sequence, time: record.time, created: isPut ? encoded.created : nil,
      value: isPut ? try vault.value(of: entry, for: name).array().hex : nil,
      conflict: record.conflict, twin: record.twin, keepsNothing: record.keepsNothing ? true : nil,
      keptNothing: record.keepsNoHistory && !record.keepsNothing ? true : nil,
      origin: record.origin.map(Vector.Pair.init),
      fields: encoded.fields.filter { !(5...9).contains($0.type) }.map(Vector.Pair.init).unlessEmpty)
  }
}
