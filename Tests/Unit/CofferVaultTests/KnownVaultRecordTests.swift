import CofferCore
import CofferSimulation
import CofferSystem
import CofferTestSupport
import CofferVaultFormat
@testable import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// The records of known vaults: what damages or exposes them, and processes that change them at the same time.
@Suite struct KnownVaultRecordTests: KnownVaultSuite {
  let vault: TestVault
  let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
  }

  /// The record of the vault's path.
  private var record: String { states.file(KnownVaultFile.Subject.path(vault.path).fileName) }

  /// The record of the vault.
  private var vaultRecord: String {
    get throws {
      states.file(
        KnownVaultFile.Subject.vault(try VaultBackend(path: vault.path, credentials: []).description().id)
          .fileName)
    }
  }

  private func damage(_ offsets: [Int], of record: String? = nil) throws {
    let record = record ?? self.record
    var bytes = try [UInt8](Data(contentsOf: URL(filePath: record)))
    for offset in offsets { bytes[offset] ^= 1 }
    try write(bytes, to: record)
  }

  /// Another program may remove the records at any time.
  @Test func aNewMasterKeyThatHasNoRecordIsReported() throws {
    let backend = fresh()
    try backend.set("a", [1])
    for name in try FileManager.default.contentsOfDirectory(atPath: states.path) {
      try FileManager.default.removeItem(atPath: states.file(name))
    }
    try backend.rekey()
    #expect(try backend.lastNotices()?.contains(.unrecorded) == true)
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

  /// Decisions of `secret trust` without a policy. In a work tree, the policy of the first use is `versioned`.
  @Test func aDecisionWithoutAPolicyTakesThatOfTheFirstUseUnlessThereIsARecord() throws {
    func fresh() -> VaultBackend { self.fresh(firstUse: .versioned) }
    try fresh().trust()
    #expect(try fresh().notices().contains(.versioned))
    try fresh().trust(.strict)
    try fresh().trust()
    #expect(try !fresh().notices().contains(.versioned))
    try fresh().trust(.versioned)
    try fresh().trust()
    #expect(try fresh().notices().contains(.versioned))
    // The policy of a damaged record may have been strict.
    try damage([70, 512 + 70])
    try fresh().trust()
    #expect(try !fresh().notices().contains(.versioned))
  }

  @Test func ofSeveralRecordedPoliciesTheStrictestHolds() throws {
    let link = vault.directory.file("link")
    #expect(symlink("test.vault", link) == 0)
    try fresh(at: link).trust(.versioned)
    #expect(try fresh(at: link).notices().contains(.versioned))
    try fresh().trust(.strict)
    #expect(try !fresh(at: link).notices().contains(.versioned))
  }

  @Test func aProcessThatOpensTheVaultAgainHeedsNewerRecords() throws {
    let backend = fresh()
    try backend.set("a", [1])
    try backend.close()
    let old = try vault.bytes
    try fresh().set("a", [2])
    try restore(old)
    #expect(code { _ = try backend.get("a") } == .rolledBack)
  }

  @Test func theFirstUseIsNoticedOnce() throws {
    let backend = fresh()
    for _ in 1...2 { #expect(try backend.notices().contains(.firstUse)) }
    #expect(try !fresh().notices().contains(.firstUse))
    #expect(try !fresh(withRecords: false).notices().contains(.firstUse))
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
    #expect(try backend.notices().contains(.recordDamaged))
    #expect(try !fresh().notices().contains(.recordDamaged))
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  /// A reader that holds the record's lock must find the same content each time.
  @Test func aRecordThatAnotherProcessLooksAtIsNotChanged() throws {
    try fresh().set("a", [1])
    let before = try Data(contentsOf: URL(filePath: record))
    let file = Glibc.open(record, O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    #expect(flock(file, LOCK_SH) == 0)
    try fresh().set("a", [2])
    #expect(try Data(contentsOf: URL(filePath: record)) == before)
    #expect(flock(file, LOCK_UN) == 0)
    #expect(try fresh().get("a") == [2])
    #expect(try Data(contentsOf: URL(filePath: record)) != before)
  }

  @Test func aRecordThatOthersCouldChangeIsRefused() throws {
    try fresh().set("a", [1])
    let record = record
    for mode in [0o601, 0o610] as [mode_t] {
      #expect(chmod(record, mode) == 0)
      #expect(code { try fresh().unlock() } == .unverifiable)
    }
    #expect(chmod(record, 0o644) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    #expect(chmod(record, 0o600) == 0)
    #expect(chmod(states.path, 0o770) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    #expect(chmod(states.path, 0o700) == 0)
    #expect(try fresh().get("a") == [1])
    #expect(rename(record, states.file("elsewhere")) == 0 && symlink("elsewhere", record) == 0)
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    let before = try Data(contentsOf: URL(filePath: states.file("elsewhere")))
    #expect(code { try fresh().set("a", [2]) } == .unverifiable)
    #expect(try Data(contentsOf: URL(filePath: states.file("elsewhere"))) == before)
  }

  /// A decision replaces the record, and does not write through a link.
  @Test(arguments: ["a link", "a link to nothing", "a pipe", "a directory"])
  func whatIsInTheRecordsPlaceIsNotPassedOver(_ what: String) throws {
    try fresh().set("a", [1])
    let (record, elsewhere) = (record, states.file("elsewhere"))
    let old = try vault.bytes
    #expect(rename(record, elsewhere) == 0)
    let kept = what == "a link" ? try Data(contentsOf: URL(filePath: elsewhere)) : nil
    if kept == nil { #expect(unlink(elsewhere) == 0) }
    switch what {
    case "a pipe": #expect(mkfifo(record, 0o600) == 0)
    case "a directory": #expect(mkdir(record, 0o700) == 0)
    default: #expect(symlink("elsewhere", record) == 0)
    }
    #expect(code { _ = try fresh().get("a") } == .unverifiable)
    if what == "a directory" { #expect(rmdir(record) == 0) }
    try fresh().trust()
    #expect(FileManager.default.contents(atPath: elsewhere) == kept)
    try fresh().set("a", [2])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aRecordThatCannotBeWrittenIsReported() throws {
    /// The real disk, without space in the directory of the records.
    struct FullFileSystem: FileSystem {
      let directory: String

      func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
        let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
        guard path.hasPrefix(directory) else { return location }
        return Location(
          directory: FullDirectory(directory: location.directory), name: location.name, path: location.path)
      }
    }
    struct FullDirectory: PassingDirectory {
      let directory: any Directory
      func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File {
        AlteredFileSystem.AlteredFile(
          try directory.open(name, writable: writable), { _ in }, { _ in },
          willWrite: { () throws(FileSystemError) in throw FileSystemError(ENOSPC) })
      }
    }
    try fresh().set("a", [1])
    let backend = fresh(
      environment: VaultEnvironment(fileSystem: FullFileSystem(directory: states.path)))
    try backend.unlock()
    #expect(try !backend.notices().contains(.unrecorded))
    try backend.set("a", [2])
    #expect(try backend.notices().contains(.unrecorded))
    // A change of the keys succeeds, and a notice says that it is not recorded.
    let other = fresh(environment: VaultEnvironment(fileSystem: FullFileSystem(directory: states.path)))
    try other.rekey()
    #expect(try other.lastNotices()?.contains(.unrecorded) == true)
  }

  @Test func aVaultWorksWithoutADirectoryForRecordsAndSaysSo() throws {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.file("missing")
    let backend = vault.open(options: options)
    try backend.set("a", [1])
    #expect(try backend.get("a") == [1])
    #expect(try backend.notices().contains(.unrecorded))
    #expect(code { try backend.trust() } == .io)
    #expect(try !fresh().notices().contains(.unrecorded))
    #expect(try !fresh(withRecords: false).notices().contains(.unrecorded))
  }

  /// Anything in the directory's place that is not a private directory is an error, so that it cannot switch the
  /// protection off.
  @Test(arguments: ["file", "file/records", "nowhere", "nowhere/records", "refused"])
  func aDirectoryThatCannotBeUsedIsAnError(_ name: String) throws {
    try write([], to: states.file("file"))
    #expect(symlink("missing", states.file("nowhere")) == 0)
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.file(name)
    let environment = VaultEnvironment(fileSystem: RefusingFileSystem(directory: states.file("refused")))
    let backend = vault.open(options: options, environment: environment)
    let isRecorded = try VaultBackend.create(
      at: vault.directory.file("new.vault"), credential: FixedCredential.key.credential, label: "",
      options: options, environment: environment)
    #expect(!isRecorded)
    for error in [
      #expect(throws: SecretError.self) { try backend.unlock() },
      #expect(throws: SecretError.self) { try backend.trust() },
    ] {
      // The permissions of the directory say nothing about the vault.
      #expect(error?.code == (name == "refused" ? .denied : .unverifiable))
      #expect(error?.reason.contains(states.file(name)) == true)
    }
  }

  @Test func theDirectoryOfAnotherUserIsRefusedWithAdvice() throws {
    let disk = try SimulatedDisk.withVault()
    // Root owns the vault, which may be read, and the directory of the records.
    try Self.open(disk, nil, user: 1000).unlock()
    let error = #expect(throws: SecretError.self) { try Self.open(disk, user: 1000).unlock() }
    #expect(error?.code == .unverifiable)
    #expect(
      error?.reason.contains("the directory of the records, known, belongs to another user") == true)
    #expect(error?.advice?.contains("XDG_STATE_HOME") == true)
    #expect(error?.advice?.contains("trust") == false)
    try Self.open(disk, user: 0).unlock()
  }

  @Test func aFailureToRecordADecisionNamesTheDirectory() throws {
    let disk = try SimulatedDisk.withVault()
    disk.refuse(.create, EACCES)
    let error = #expect(throws: SecretError.self) { try Self.open(disk).trust() }
    #expect(error?.code == .denied)
    #expect(error?.reason == "The decision to trust the vault at vault cannot be recorded in known.")
  }

  /// A backup made of hard links keeps its old content.
  @Test func aRecordWithASecondNameIsMadeAnew() throws {
    try fresh().set("a", [1])
    let (record, copy) = (record, vault.directory.file("copy"))
    #expect(link(record, copy) == 0)
    let before = try Data(contentsOf: URL(filePath: copy))
    #expect(try fresh().get("a") == [1])
    let old = try vault.bytes
    try fresh().set("a", [2])
    #expect(try Data(contentsOf: URL(filePath: copy)) == before)
    #expect(try Data(contentsOf: URL(filePath: record)) != before)
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  // MARK: Processes at the same time

  private static func open(
    _ disk: SimulatedDisk, _ directory: String? = "known", user: UInt32 = 0
  ) -> VaultBackend {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = directory
    return VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: options,
      environment: VaultEnvironment(fileSystem: disk, user: user, uptime: { .zero }, sleep: { _ in }))
  }

  /// Another process changes the vault and its record at each point of a reader's look.
  @Test(arguments: [false, true]) func aSlowReaderDoesNotLowerARecord(_ rekeying: Bool) throws {
    let start = try SimulatedDisk.withVault()
    try Self.open(start).set("a", [1])
    let old = try #require(start.content(of: "vault"))
    // A longer file of the same master key, which has not been seen yet.
    let fork = start.duplicate()
    for _ in 0..<20 { try Self.open(fork, nil).set("a", [66]) }
    let long = try #require(fork.content(of: "vault"))
    // One record for the path as it was named, one for the path without links, and one for the vault.
    let id = try #require(start.content(of: "vault"))[28..<44].withUnsafeBytes { Bytes16($0) }.hex
    let ofVault = "known/" + KnownVaultFile.Subject.vault(id).fileName
    let records = start.names.filter { $0.hasPrefix("known/") && (rekeying || $0 != ofVault) }
    #expect(records.count == (rekeying ? 3 : 2))
    var changes = 0
    for call in 1...60 {
      let disk = start.duplicate()
      if rekeying { disk.overwrite("vault", with: long) }
      let reader = Self.open(disk)
      let other = Self.open(disk)
      // The records that the other process wrote. It skips a record that the reader is writing to.
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
      // The other process recorded a later state, which the reader must not replace.
      #expect(try reader.lastNotices()?.contains(.unrecorded) != true, "call \(call)")
      for (record, content) in recorded { #expect(disk.content(of: record) == content, "call \(call)") }
      guard recorded.count == records.count else {
        // The reader has recorded the longer file. The rekeyed file does not follow from it, so it is refused.
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

  /// Another process makes the records while this one is about to.
  @Test func aSlowFirstReaderDoesNotReplaceARecord() throws {
    let start = try SimulatedDisk.withVault()
    let old = try #require(start.content(of: "vault"))
    var changes = 0
    for call in 1...60 {
      let disk = start.duplicate()
      let other = Self.open(disk)
      var isRecorded = false
      disk.interrupt(atCall: disk.calls + call) {
        isRecorded = code { try other.set("a", [2]) } == nil
      }
      _ = code { try Self.open(disk).unlock() }
      disk.interrupt(atCall: nil)
      if !isRecorded { continue }
      changes += 1
      disk.overwrite("vault", with: old)
      #expect(code { try Self.open(disk).unlock() } == .rolledBack, "call \(call)")
    }
    #expect(changes > 5)
  }

  @Test func anAcceptedVaultIsKnownAfterAPowerLoss() throws {
    let disk = try SimulatedDisk.withVault()
    let old = try #require(disk.content(of: "vault"))
    try Self.open(disk, nil).set("a", [1])
    try Self.open(disk).trust()
    for seed in 0..<20 as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let restarted = disk.afterPowerLoss(&random)
      restarted.overwrite("vault", with: old)
      #expect(code { try Self.open(restarted).unlock() } == .rolledBack)
    }
  }

  @Test func whatAnInterruptedFirstUseLeftIsRemoved() throws {
    try fresh().unlock()
    let names = Set(try FileManager.default.contentsOfDirectory(atPath: states.path))
    for name in names {
      #expect(unlink(states.file(name)) == 0)
      try write([1], to: states.file(".\(name).0000000000000000.unfinished"))
    }
    try fresh().unlock()
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: states.path)) == names)
  }

  /// A reader without a lock may see a record that another process has only half written.
  @Test func aRecordThatIsBeingWrittenIsNotReportedAsDamaged() throws {
    try fresh().set("a", [1])
    let path = record
    let whole = try [UInt8](Data(contentsOf: URL(filePath: path)))
    try damage([70])
    let writer = Glibc.open(path, O_RDWR | O_CLOEXEC)
    defer { close(writer) }
    try #require(flock(writer, LOCK_EX) == 0)
    let environment = VaultEnvironment(sleep: { _ in
      _ = whole.withUnsafeBytes { pwrite(writer, $0.baseAddress, $0.count, 0) }
      flock(writer, LOCK_UN)
    })
    let backend = fresh(environment: environment)
    #expect(try backend.get("a") == [1])
    #expect(try !backend.notices().contains(.recordDamaged))
    // If no process is writing the record, the damage is reported.
    try damage([70])
    #expect(try fresh().notices().contains(.recordDamaged))
  }
}
