import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// Each implementation reads the files of the other. The Python implementation was written from the specification
/// alone.
@Suite(.needs("python3", "/usr/lib/python3/dist-packages/nacl")) struct InteroperabilityTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("v")
    var text = try VaultKey.text(of: SecretBytes([UInt8](repeating: 7, count: 32))).array()
    text.append(0x0A)
    try Data(text).write(to: URL(filePath: directory.file("key")))
  }

  private var swift: VaultBackend { VaultBackend(path: path, credentials: [FixedCredential.key]) }

  private func dump() throws -> [String: Any] {
    let output = try Python.run(["dump", path, "--key-text-file", directory.file("key")])
    return try #require(try JSONSerialization.jsonObject(with: output) as? [String: Any])
  }

  private func values(_ dump: [String: Any]) throws -> [String: String] {
    let items = try #require(dump["items"] as? [[String: Any]])
    return Dictionary(
      uniqueKeysWithValues: try items.map {
        (try #require($0["account"] as? String), try #require($0["value"] as? String))
      })
  }

  @Test func pythonReadsWhatSwiftWrote() throws {
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential)
    var expected: [String: String] = [:]
    for count in [0, 1, 31, 32, 33, 1000, 70_000] {
      let value = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      try swift.store(
        SecretBytes(value), for: identifier("\(count)"),
        metadata: SecretMetadata(label: "of \(count)", attributes: ["count": "\(count)"]))
      expected["\(count)"] = value.map { String(format: "%02x", $0) }.joined()
    }
    #expect(try values(dump()) == expected)
    // The same with a base and a tail.
    try swift.compact()
    try swift.set("0", [1])
    try swift.remove(identifier("33"))
    expected["0"] = "01"
    expected["33"] = nil
    let dumped = try dump()
    #expect(try values(dumped) == expected)
    #expect(try swift.verify().pin == dumped["pin"] as? String)
  }

  @Test func pythonReadsABaseOfManyBlocks() throws {
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential)
    try swift.withTransaction { transaction throws(SecretError) in
      for index in 0..<2000 {
        try transaction.store(
          SecretBytes("\(index)"), for: SecretIdentifier(service: "s", account: "\(index)"),
          metadata: nil)
      }
    }
    #expect(try values(dump()).count == 2000)
  }

  @Test func pythonReadsARekeyedVault() throws {
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential)
    try swift.set("a", [1, 2])
    try swift.rekey()
    try swift.rekey()
    let dump = try dump()
    #expect(try values(dump) == ["a": "0102"])
    #expect(dump["lineage"] as? Int == 2)
  }

  @Test func pythonReadsTheHistoryThatSwiftWrote() throws {
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential)
    for value in 1...3 as ClosedRange<UInt8> { try swift.set("a", [value]) }
    try swift.set("b", [4])
    try swift.remove(identifier("b"))
    for isCompacted in [false, true] {
      if isCompacted { try swift.compact() }
      let dump = try dump()
      let versions = try #require(dump["versions"] as? [[String: Any]])
      #expect(versions.map { $0["value"] as? String } == ["02", "01", "04"])
      let found =
        try swift.versions(of: identifier("a")).dropFirst() + swift.versions(of: identifier("b")).dropFirst()
      #expect(versions.map { $0["sequence"] as? Int } == found.map(\.number))
      let removed = try #require(dump["removed"] as? [[String: Any]])
      #expect(removed.map { $0["account"] as? String } == ["b"])
      #expect(dump["history"] as? [String: Int] == ["versions": 10, "days": 90])
    }
  }

  /// A change that says nothing about history keeps or drops it as the newest value says, whoever wrote that value.
  @Test func eachGoesOnWithoutAHistoryThatTheOtherDoesNotKeep() throws {
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential)
    func append(_ change: [String: Any]) throws {
      let now = Int(Date().timeIntervalSince1970 * 1000)
      let put: [String: Any] = ["service": "tests", "account": "a", "value_text": "python", "created": now]
        .merging(change) { $1 }
      let changes = try JSONSerialization.data(withJSONObject: ["changes": [["put": put]]])
      try changes.write(to: URL(filePath: directory.file("c")))
      _ = try Python.run(["append", path, directory.file("c"), "--key-text-file", directory.file("key")])
    }
    let name = try identifier("a")
    for isRewritten in [false, true] {
      try swift.store(SecretBytes("one"), for: name, metadata: .newValue, history: .none)
      if isRewritten { try swift.compact() }
      try append([:])
      #expect(try swift.versions(of: name).count == 1)
      try append(["keeps_nothing": false])
      #expect(try swift.versions(of: name).count == 2)
      try append(["keeps_nothing": true])
      if isRewritten { try swift.compact() }
      try swift.set("a", [2])
      #expect(try swift.versions(of: name).count == 1)
      try swift.store(SecretBytes("three"), for: name, metadata: .newValue, history: .kept)
      #expect(try swift.versions(of: name).count == 2)
    }
  }

  /// Each implementation judges by the record that the other wrote, even after a change of the master key.
  @Test func knownVaultRecordsAreShared() throws {
    let records = directory.file("records")
    try directory.makeDirectory("records")
    var options = VaultOptions()
    options.knownVaultsDirectory = records
    func swift() -> VaultBackend {
      VaultBackend(path: path, credentials: [FixedCredential.key], options: options)
    }
    let key = ["--key-text-file", directory.file("key")]
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential)
    try swift().set("a", [1])
    // Selects the record of the place. The other of the two is the record of the vault, whose policy is 2.
    let record = try #require(
      FileManager.default.contentsOfDirectory(atPath: records).map { "\(records)/\($0)" }
        .first { try Data(contentsOf: URL(filePath: $0))[8] != 2 })
    func judgement() throws -> String? {
      let output = try Python.run(["judge", path, record] + key)
      return (try JSONSerialization.jsonObject(with: output) as? [String: Any])?["judgement"] as? String
    }
    #expect(try judgement() == "accepted")
    let changes: [String: Any] = [
      "changes": [["put": ["service": "tests", "account": "b", "value_text": "b"]]],
      "slots": [["type": "key", "key": String(repeating: "07", count: 32)]],
    ]
    try JSONSerialization.data(withJSONObject: changes).write(to: URL(filePath: directory.file("c")))
    _ = try Python.run(["rekey", path, directory.file("c")] + key)
    #expect(try swift().get("b") == Array("b".utf8))
    #expect(try judgement() == "accepted")
    let old = try Data(contentsOf: URL(filePath: path))
    try swift().set("a", [2])
    try swift().rekey()
    #expect(try judgement() == "accepted")
    try old.write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0)
    #expect(throws: (any Error).self) { try judgement() }
    #expect(throws: SecretError.self) { try swift().unlock() }
  }

  @Test func swiftReadsAndChangesWhatPythonWrote() throws {
    let key = String(repeating: "07", count: 32)
    let specification: [String: Any] = [
      "seed": "interoperability",
      "slots": [["type": "key", "key": key]],
      "base": ["items": [["service": "tests", "account": "base", "value_text": "from the base"]]],
      "tail": [[["put": ["service": "tests", "account": "tail", "value_text": "from the tail"]]]],
    ]
    try JSONSerialization.data(withJSONObject: specification).write(to: URL(filePath: directory.file("s")))
    _ = try Python.run(["write", directory.file("s"), path])
    #expect(try swift.get("base") == Array("from the base".utf8))
    #expect(try swift.get("tail") == Array("from the tail".utf8))
    let longLived = swift
    #expect(try longLived.verify().secretCount == 2)

    let changes: [String: Any] = [
      "changes": [
        ["put": ["service": "tests", "account": "later", "value_text": "appended"]],
        ["remove": ["service": "tests", "account": "base"]],
      ]
    ]
    try JSONSerialization.data(withJSONObject: changes).write(to: URL(filePath: directory.file("c")))
    _ = try Python.run(["append", path, directory.file("c"), "--key-text-file", directory.file("key")])
    #expect(try longLived.get("later") == Array("appended".utf8))
    #expect(try longLived.get("base") == nil)

    try longLived.set("swift", [9])
    try JSONSerialization.data(withJSONObject: [
      "changes": [["put": ["service": "tests", "account": "later", "value_text": "again"]]]
    ]).write(to: URL(filePath: directory.file("c")))
    _ = try Python.run(["append", path, directory.file("c"), "--key-text-file", directory.file("key")])
    try longLived.set("swift", [10])
    #expect(try values(dump()).keys.sorted() == ["later", "swift", "tail"])
    #expect(try longLived.verify().secretCount == 3)
  }
}

/// The Python implementation's command line.
enum Python {
  static func run(_ arguments: [String]) throws -> Data {
    // Debian's own Python, for which `Scripts/setup` installs packages.
    let command = ["/usr/bin/python3", Vector.directory.appending(path: "coffer_vault.py").path()]
    let result = try ChildProcess.run(command + arguments, environment: ProcessInfo.processInfo.environment)
    guard result.status == 0 else {
      let text = result.outputText + result.errorText
      throw TestFailure(
        text.contains("No module named 'nacl'")
          ? "These tests need python3 with PyNaCl: run Scripts/setup tests." : text)
    }
    return result.output
  }
}
