import CofferCore
import CofferTestSupport
import CofferVaultFormat
import Foundation
import Testing

@testable import CofferVault

/// Random merges of the second implementation, made again.
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
    var outcomes: [MergeReport.Outcome: Int] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: cases).sorted() {
      let data = try Data(contentsOf: URL(filePath: "\(cases)/\(name)"))
      let one = try JSONDecoder().decode(MergeCase.self, from: data)
      outcomes[try one.check(in: directory, name), default: 0] += 1
    }
    #expect(outcomes.count == 3, "\(outcomes)")
  }
}

/// A merge of the second implementation.
private struct MergeCase: Decodable {
  struct Expected: Decodable, Equatable {
    let entries, formerSlots, recent, taken: [[Scalar]]
    let sequence, floor, leftOut, refused, erased: Int
    let limit: [Scalar]
    let slots: [String]
  }
  enum Scalar: Decodable, Equatable {
    case number(Int)
    case text(String)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .number(flag ? 1 : 0)
      } else if let number = try? container.decode(Int.self) {
        self = .number(number)
      } else {
        self = .text(try container.decode(String.self))
      }
    }
  }
  let ours, theirs, ancestor, key: String
  let undoes: Bool
  let time: Double
  let expected: Expected

  func check(in directory: TemporaryDirectory, _ name: String) throws -> MergeReport.Outcome {
    func write(_ hex: String, _ name: String) throws -> String {
      let path = directory.file(name)
      try Data(bytes(ofHex: hex)).write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return path
    }
    let time = time
    let backend = VaultBackend(
      path: try write(ours, "ours"), credentials: [FixedCredential(kind: .key(bytes(ofHex: key)))],
      options: VaultOptions(), environment: VaultEnvironment(now: { Date(timeIntervalSince1970: time / 1000) }))
    let report = try backend.merge(
      with: VaultCopy(bytes(ofHex: theirs), named: "theirs"),
      ancestor: ancestor.isEmpty ? nil : VaultCopy(at: write(ancestor, "ancestor")),
      undoing: undoes)
    let file = try Data(contentsOf: URL(filePath: backend.path))
    switch report.outcome {
    case .unchanged: #expect(Array(file) == bytes(ofHex: ours))
    case .replaced: #expect(Array(file) == Array(bytes(ofHex: theirs).prefix(file.count)))
    case .merged:
      let found = try backend.read { vault throws(SecretError) in try self.found(vault, report) }
      #expect(found == expected, "\(name)")
    }
    return report.outcome
  }

  private func found(_ vault: VaultSnapshot, _ report: MergeReport) throws(SecretError) -> Expected {
    var entries: [[Scalar]] = []
    try vault.forEachSecret { records throws(SecretError) in
      for entry in records {
        let (record, name) = (entry.record, try entry.record.identifier())
        let value = entry.isRemoval ? [] : try vault.value(of: entry, for: name).array()
        entries.append([
          .text(name.account), .number(entry.isRemoval ? 2 : 1), .number(record.sequence),
          .number(Int(record.time)), .text(value.hex), .number(record.conflict ?? 0), .number(record.twin ?? 0),
          .number(record.keepsNothing ? 1 : 0), .number(record.keepsNoHistory && !record.keepsNothing ? 1 : 0),
          .number(record.origin?.sequence ?? 0), .text(record.origin?.tailTag.hex ?? ""),
        ])
      }
    }
    func pairs(_ list: [Checkpoint]) -> [[Scalar]] { list.map { [.number($0.sequence), .text($0.tailTag.hex)] } }
    let (settings, history) = (vault.base.settings, vault.base.settings.history)
    return Expected(
      entries: entries,
      formerSlots: settings.formerSlots.map { [.text($0.id.hex), .number($0.sequence), .text($0.label)] },
      recent: pairs(try vault.recentChanges()), taken: pairs(settings.taken),
      sequence: vault.state.sequence, floor: vault.base.recent.floor, leftOut: report.leftOut.count,
      refused: undoes ? 0 : report.takenBack.count, erased: report.erased.count,
      limit: [
        .number(history.limit.versions), .number(history.limit.days), .number(history.sequence),
        .number(history.origin?.sequence ?? 0), .text(history.origin?.tailTag.hex ?? ""),
      ], slots: vault.file.header.slots.map { Array($0.bytes).hex })
  }
}

private func bytes(ofHex text: String) -> [UInt8] {
  let digits = Array(text.utf8).map { UInt8($0 > 0x39 ? $0 - 0x61 + 10 : $0 - 0x30) }
  return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

extension [UInt8] {
  fileprivate var hex: String { map { $0.hexadecimal.lowercased() }.joined() }
}
