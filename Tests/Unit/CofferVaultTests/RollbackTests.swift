import CofferCore
import CofferTestSupport
import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// An old copy of a vault is authentic. The watermark, a checkpoint and a process's memory tell it from the new.
@Suite struct RollbackTests {
  private let vault: TestVault
  private let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
  }

  /// A backend as a new process would have it.
  private func fresh(withWatermark: Bool = true) -> VaultBackend {
    var options = VaultOptions.cheap
    if withWatermark { options.knownVaultsDirectory = states.path }
    return vault.open(options: options)
  }

  private func restore(_ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(filePath: vault.path))
    #expect(chmod(vault.path, 0o600) == 0)
  }

  private func code(_ body: () throws -> Void) -> SecretError.Code? {
    do {
      try body()
      return nil
    } catch { return (error as? SecretError)?.code }
  }

  @Test func aLaterRunDetectsAnOlderCopy() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().set("a", [2])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    #expect(code { try fresh().set("b", [1]) } == .rolledBack)
    #expect(code { _ = try fresh().verify() } == .rolledBack)
    // Who keeps no watermark cannot know.
    #expect(try fresh(withWatermark: false).get("a") == [1])
  }

  @Test func aReaderRemembersTheStateThatItRead() throws {
    try fresh(withWatermark: false).set("a", [1])
    let old = try vault.bytes
    try fresh(withWatermark: false).set("a", [2])
    #expect(try fresh().get("a") == [2])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aLaterRunDetectsAFork() throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().set("a", [2])
    try restore(common)
    try fresh(withWatermark: false).set("a", [3])
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aLaterRunDetectsACopyFromBeforeARekey() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().rekey()
    #expect(try fresh().get("a") == [1])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  /// The process that rekeys raises the watermark itself.
  @Test func aCopyFromBeforeARekeyIsDetectedWithoutAReadInBetween() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().rekey()
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aRekeyByAnotherUserIsNotARollback() throws {
    try fresh().set("a", [1])
    try fresh(withWatermark: false).rekey()
    #expect(try fresh().get("a") == [1])
    #expect(try fresh().get("a") == [1])
  }

  @Test func aRestoredBackupCanBeAccepted() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().set("a", [2])
    try restore(old)
    let accepted = try fresh().trust()
    #expect(try fresh().verify().checkpoint == accepted)
    #expect(try fresh().get("a") == [1])
    try fresh().set("a", [3])
    #expect(try fresh().get("a") == [3])
  }

  @Test func aVaultWorksWithoutAUsableWatermark() throws {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.file("not there")
    try vault.open(options: options).set("a", [1])
    #expect(try vault.open(options: options).get("a") == [1])
    // And one that is no watermark is none.
    #expect(try fresh().get("a") == [1])
    let names = try FileManager.default.contentsOfDirectory(atPath: states.path)
    #expect(names.count == 1)
    for name in names { try Data("garbage".utf8).write(to: URL(filePath: states.file(name))) }
    #expect(try fresh().get("a") == [1])
  }

  /// A power loss may leave a watermark with the beginning of one state and the end of another.
  @Test func aTornWatermarkIsIgnored() throws {
    try fresh().set("a", [1])
    let name = try #require(FileManager.default.contentsOfDirectory(atPath: states.path).first)
    let file = URL(filePath: states.file(name))
    var bytes = try Data(contentsOf: file)
    // The sequence begins behind 8 bytes of "COFFERW1".
    bytes[8 + 2] = 7
    try bytes.write(to: file)
    #expect(try fresh().get("a") == [1])
  }

  @Test func aBackupAtAnotherPathCanBeRead() throws {
    try fresh().set("a", [1])
    let copy = vault.directory.file("backup.vault")
    try Data(vault.bytes).write(to: URL(filePath: copy))
    #expect(chmod(copy, 0o600) == 0)
    try fresh().set("a", [2])
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.path
    let backup = VaultBackend(path: copy, credentials: [FixedCredential.key], options: options)
    #expect(try backup.get("a") == [1])
    #expect(try fresh().get("a") == [2])
  }

  @Test func aReportIsComparedWithAnEarlierCheckpoint() throws {
    try fresh().set("a", [1])
    let first = try fresh().verify()
    let old = try vault.bytes
    try first.requireAtLeast(first.checkpoint)
    try fresh().set("a", [2])
    let second = try fresh().verify()
    try second.requireAtLeast(first.checkpoint)
    #expect(code { try first.requireAtLeast(second.checkpoint) } == .rolledBack)
    // The same number of changes, and others.
    try restore(old)
    try fresh(withWatermark: false).set("a", [3])
    let forked = try fresh(withWatermark: false).verify()
    #expect(code { try forked.requireAtLeast(second.checkpoint) } == .rolledBack)
    for text in [
      "", "3", "3-", "x-\(String(repeating: "0", count: 32))", "-1-\(String(repeating: "0", count: 32))",
    ] {
      #expect(code { try second.requireAtLeast(text) } == .configuration)
    }
  }
}
