import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// An old copy of a vault is authentic. Known-vault records, a checkpoint and the memory of a process
/// distinguish it from the newest state.
@Suite struct RollbackTests {
  private let vault: TestVault
  private let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
  }

  /// Opens the vault like a new process.
  private func fresh(withRecords: Bool = true) -> VaultBackend {
    var options = VaultOptions.cheap
    if withRecords { options.knownVaultsDirectory = states.path }
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
    // A process without a record cannot detect it.
    #expect(try fresh(withRecords: false).get("a") == [1])
  }

  @Test func aReaderRemembersTheStateThatItRead() throws {
    try fresh(withRecords: false).set("a", [1])
    let old = try vault.bytes
    try fresh(withRecords: false).set("a", [2])
    #expect(try fresh().get("a") == [2])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aLaterRunDetectsAFork() throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().set("a", [2])
    try restore(common)
    try fresh(withRecords: false).set("a", [3])
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aLaterRunDetectsACopyFromBeforeARekey() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().rekey()
    #expect(try fresh().get("a") == [1])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
  }

  /// The process that rekeys raises the record itself.
  @Test func aCopyFromBeforeARekeyIsDetectedWithoutAReadInBetween() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().rekey()
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
  }

  @Test func aRekeyByAnotherUserIsNotARollback() throws {
    try fresh().set("a", [1])
    try fresh(withRecords: false).rekey()
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
    // The same number of changes with another last change.
    try restore(old)
    try fresh(withRecords: false).set("a", [3])
    let forked = try fresh(withRecords: false).verify()
    #expect(code { try forked.requireAtLeast(second.checkpoint) } == .rolledBack)
    // The tail has the proof that a later state belongs to another history.
    try fresh(withRecords: false).set("a", [4])
    let later = try fresh(withRecords: false).verify()
    #expect(code { try later.requireAtLeast(second.checkpoint) } == .rolledBack)
    try later.requireAtLeast(forked.checkpoint)
    try later.requireAtLeast(first.checkpoint)
    for text in [
      "", "3", "3-", "x-\(String(repeating: "0", count: 32))", "-1-\(String(repeating: "0", count: 32))",
    ] {
      #expect(code { try second.requireAtLeast(text) } == .configuration)
    }
  }

  // MARK: Forks and other vaults

  @Test func aForkIsDetectedByItsTailAlthoughItIsLonger() throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().set("a", [2])
    try restore(common)
    for value in 3...6 as ClosedRange<UInt8> { try fresh(withRecords: false).set("a", [value]) }
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    #expect(code { try fresh().set("a", [7]) } == .rolledBack)
    #expect(code { _ = try fresh().verify() } == .rolledBack)
  }

  @Test func aForkIsDetectedByItsRoot() throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().compact()
    try restore(common)
    try fresh(withRecords: false).compact()
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    try fresh(withRecords: false).set("a", [2])
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func anotherVaultInPlaceIsRefusedBeforeAKeyIsTried() throws {
    try fresh().set("a", [1])
    let other = try TestVault()
    try other.open().set("a", [9])
    try restore(other.bytes)
    #expect(code { _ = try fresh().get("a") } == .unexpectedVault)
    #expect(code { try fresh().set("a", [2]) } == .unexpectedVault)
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.path
    #expect(code { try vault.open(.otherKey, options: options).unlock() } == .unexpectedVault)
    try fresh().trust()
    #expect(try fresh().get("a") == [9])
  }

  // MARK: Links

  /// Opens the vault by another path, like a new process.
  private func fresh(at path: String) -> VaultBackend {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.path
    return VaultBackend(path: path, credentials: [FixedCredential.key], options: options)
  }

  private func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0)
  }

  @Test func anOlderCopyBehindALinkIsDetected() throws {
    try fresh().set("a", [1])
    let copy = vault.directory.file(".x.old")
    try write(vault.bytes, to: copy)
    try fresh().set("a", [2])
    #expect(unlink(vault.path) == 0 && symlink(".x.old", vault.path) == 0)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    #expect(code { try fresh().set("a", [3]) } == .rolledBack)
  }

  @Test func anOlderCopyInALinkedDirectoryIsDetected() throws {
    try vault.directory.makeDirectory("new")
    try vault.directory.makeDirectory("old")
    let path = vault.directory.file("new/v")
    try write(vault.bytes, to: path)
    try fresh(at: path).set("a", [1])
    try write([UInt8](Data(contentsOf: URL(filePath: path))), to: vault.directory.file("old/v"))
    try fresh(at: path).set("a", [2])
    #expect(rename(vault.directory.file("new"), vault.directory.file("moved")) == 0)
    #expect(symlink("old", vault.directory.file("new")) == 0)
    #expect(code { _ = try fresh(at: path).get("a") } == .rolledBack)
    // Other spellings of the path name the same place.
    let spelled = vault.directory.file("./new//./v")
    #expect(code { _ = try fresh(at: spelled).get("a") } == .rolledBack)
  }

  @Test func aPlaceReachedByALinkIsRememberedAsWell() throws {
    let link = vault.directory.file("link")
    #expect(symlink("test.vault", link) == 0)
    try fresh(at: link).set("a", [1])
    let old = try vault.bytes
    try fresh(at: link).set("a", [2])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    #expect(code { _ = try fresh(at: link).get("a") } == .rolledBack)
  }

  // MARK: Revoked keys

  /// Removes the slot of the other key, and returns the file from before.
  private func revoke() throws -> [UInt8] {
    try fresh().set("a", [1])
    let slot = try fresh().addKeySlot(FixedCredential.otherKey.credential)
    let before = try vault.bytes
    try fresh().removeKeySlots(ids: [slot.id])
    return before
  }

  /// Changes the old copy with the removed key until it is longer than the current file, and puts it in
  /// place.
  private func attack(with old: [UInt8], rekeying: Bool = false) throws {
    let attacker = try TestVault()
    try write(old, to: attacker.path)
    for _ in 0..<8 { try attacker.open(.otherKey).set("a", [66]) }
    if rekeying { try attacker.open(.otherKey).rekey(credentials: [FixedCredential.key]) }
    try restore(attacker.bytes)
  }

  @Test(arguments: [false, true]) func aRevokedKeyDoesNotComeBack(_ rekeying: Bool) throws {
    let running = fresh()
    try running.unlock()
    let old = try revoke()
    #expect(try running.get("a") == [1])
    let current = try vault.bytes
    try attack(with: old, rekeying: rekeying)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    #expect(code { try fresh().set("b", [1]) } == .unexpectedKey)
    #expect(code { _ = try fresh().verify() } == .unexpectedKey)
    // A process that runs is not taken in either, with records or without.
    #expect(code { _ = try running.get("a") } == .unexpectedKey)
    try restore(current)
    #expect(try fresh().get("a") == [1])
    let withoutRecords = fresh(withRecords: false)
    try withoutRecords.unlock()
    try attack(with: old, rekeying: rekeying)
    #expect(code { _ = try withoutRecords.get("a") } == .unexpectedKey)
  }

  @Test func theVersionedPolicyHoldsIdentityAndLineageAlone() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().trust(.versioned)
    #expect(try fresh().condition().trustPolicy == .versioned)
    try fresh().set("a", [2])
    try restore(old)
    #expect(try fresh().get("a") == [1])
    for value in 3...5 as ClosedRange<UInt8> { try fresh().set("a", [value]) }
    #expect(try fresh().condition().trustPolicy == .versioned)
    try restore(old)
    #expect(try fresh().get("a") == [1])
    // A removed key and another vault are refused as ever.
    let before = try revoke()
    let current = try vault.bytes
    try attack(with: before)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    try restore(TestVault().bytes)
    #expect(code { _ = try fresh().get("a") } == .unexpectedVault)
    try restore(current)
    #expect(try fresh().get("a") == [1])
    // And the state is held again once the policy is strict.
    try fresh().trust(.strict)
    let strict = try vault.bytes
    try fresh().set("a", [2])
    try restore(strict)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aStrictPlaceStaysStrictBesideAVersionedOne() throws {
    try fresh().set("a", [1])
    let link = vault.directory.file("link")
    #expect(symlink("test.vault", link) == 0)
    try fresh(at: link).unlock()
    try fresh().trust(.versioned)
    let old = try vault.bytes
    try fresh(at: link).set("a", [2])
    try restore(old)
    #expect(code { _ = try fresh(at: link).get("a") } == .rolledBack)
    #expect(try fresh().get("a") == [1])
  }

  // MARK: Records

  /// The only record.
  private var record: String {
    get throws {
      states.file(try #require(FileManager.default.contentsOfDirectory(atPath: states.path).first))
    }
  }

  private func damage(_ offsets: [Int]) throws {
    var bytes = try [UInt8](Data(contentsOf: URL(filePath: record)))
    for offset in offsets { bytes[offset] ^= 1 }
    try write(bytes, to: record)
  }

  @Test func aDamagedRecordIsReportedAndAPersonDecides() throws {
    try fresh().set("a", [1])
    try damage([70, 512 + 70])
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    #expect(code { try fresh().set("a", [2]) } == .unverifiable)
    try fresh().trust()
    #expect(try fresh().get("a") == [1])
    try write([], to: record)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
  }

  /// A power loss may tear the slot that was being written.
  @Test(arguments: [70, 512 + 70]) func aHalfDamagedRecordIsReportedAndMended(_ offset: Int) throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().compact()
    try fresh().set("a", [2])
    try damage([offset])
    let backend = fresh()
    #expect(try backend.get("a") == [2])
    #expect(try backend.condition().isRecordDamaged)
    #expect(try !fresh().condition().isRecordDamaged)
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aRecordThatOthersCouldChangeIsRefused() throws {
    try fresh().set("a", [1])
    let record = try record
    #expect(chmod(record, 0o644) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    #expect(chmod(record, 0o600) == 0)
    #expect(chmod(states.path, 0o770) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    #expect(chmod(states.path, 0o700) == 0)
    #expect(link(record, states.file("second name")) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    #expect(unlink(states.file("second name")) == 0)
    #expect(try fresh().get("a") == [1])
    #expect(rename(record, states.file("elsewhere")) == 0 && symlink("elsewhere", record) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    let before = try Data(contentsOf: URL(filePath: states.file("elsewhere")))
    #expect(code { try fresh().set("a", [2]) } == .unverifiable)
    #expect(try Data(contentsOf: URL(filePath: states.file("elsewhere"))) == before)
  }

  @Test func aVaultWorksWithoutADirectoryForRecordsAndSaysSo() throws {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.file("missing")
    let backend = vault.open(options: options)
    try backend.set("a", [1])
    #expect(try backend.get("a") == [1])
    #expect(try backend.condition().isUnrecorded)
    #expect(code { try backend.trust() } == .io)
    #expect(try !fresh().condition().isUnrecorded)
    #expect(try !fresh(withRecords: false).condition().isUnrecorded)
  }

  // MARK: Processes at the same time

  private static func open(_ disk: SimulatedDisk, _ directory: String? = "known") -> VaultBackend {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = directory
    return VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: options,
      environment: VaultEnvironment(fileSystem: disk, user: 0, uptime: { .zero }, sleep: { _ in }))
  }

  /// Another process changes the vault and its record at each point of a reader's look.
  @Test(arguments: [false, true]) func aSlowReaderDoesNotLowerARecord(_ rekeying: Bool) throws {
    let start = SimulatedDisk()
    let environment = VaultEnvironment(fileSystem: start, user: 0)
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: environment)
    try Self.open(start).set("a", [1])
    let old = try #require(start.content(of: "vault"))
    // A longer file of the same master key, which has not been seen yet.
    let fork = start.duplicate()
    for _ in 0..<20 { try Self.open(fork, nil).set("a", [66]) }
    let long = try #require(fork.content(of: "vault"))
    // One for the path as it was named, and one for the path without links.
    let records = start.names.filter { $0.hasPrefix("known/") }
    #expect(records.count == 2)
    var changes = 0
    for call in 1...60 {
      let disk = start.duplicate()
      if rekeying { disk.overwrite("vault", with: long) }
      let reader = Self.open(disk)
      let other = Self.open(disk)
      // What the other process recorded. It leaves out a record that the reader is writing to.
      var recorded: [String: [UInt8]] = [:]
      disk.interrupt(atCall: disk.calls + call) {
        let before = records.map(disk.content)
        if rekeying { disk.overwrite("vault", with: old) }
        if code({ if rekeying { try other.rekey() } else { try other.set("a", [2]) } }) != nil { return }
        for (record, before) in zip(records, before) where disk.content(of: record) != before {
          recorded[record] = disk.content(of: record)
        }
      }
      _ = code { try reader.unlock() }
      disk.interrupt(atCall: nil)
      for (record, content) in recorded { #expect(disk.content(of: record) == content, "call \(call)") }
      guard recorded.count == records.count else {
        // The reader has recorded the longer file, which the rekeyed one does not follow from.
        if rekeying, !recorded.isEmpty { #expect(code { try Self.open(disk).unlock() } == .unexpectedKey) }
        continue
      }
      changes += 1
      #expect(code { try Self.open(disk).unlock() } == nil, "call \(call)")
      disk.overwrite("vault", with: rekeying ? long : old)
      #expect(
        code { try Self.open(disk).unlock() } == (rekeying ? .unexpectedKey : .rolledBack), "call \(call)")
    }
    #expect(changes > 5)
  }
}
