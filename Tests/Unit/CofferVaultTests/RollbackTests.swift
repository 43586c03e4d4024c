import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import FoundationEssentials
import Glibc
import Synchronization
import Testing

/// An old copy of a vault is authentic. Known-vault records, pins and the memory of a process distinguish it from the
/// newest state.
@Suite struct RollbackTests: KnownVaultSuite {
  let vault: TestVault
  let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
  }

  @Test func aLaterRunDetectsAnOlderCopy() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().set("a", [2])
    try restore(old)
    let error = #expect(throws: SecretError.self) { _ = try fresh().get("a") }
    #expect(error?.code == .rolledBack)
    #expect(
      error?.reason
        == "The vault at \(vault.path) is at change 2, and change 3 was seen before.")
    #expect(code { try fresh().set("b", [1]) } == .rolledBack)
    #expect(code { _ = try fresh().verify() } == .rolledBack)
    // A process without a record cannot detect the rollback.
    #expect(try fresh(withRecords: false).get("a") == [1])
  }

  /// The damage may be the cause of the rollback.
  @Test func damageToACommitSlotIsNamedWithARollback() throws {
    try fresh().set("a", [1])
    var old = try vault.bytes
    try fresh().set("a", [2])
    for isDamaged in [false, true] {
      // The first slot follows the header's page.
      if isDamaged { old[4096 + 100] ^= 1 }
      try restore(old)
      let error = #expect(throws: SecretError.self) { try fresh().unlock() }
      #expect(error?.code == .rolledBack)
      #expect(error?.reason.contains("One of its two commit slots is damaged") == isDamaged)
      #expect(error?.advice?.contains("The damage may have taken") == isDamaged)
    }
  }

  @Test func aReaderRemembersTheStateThatItRead() throws {
    try fresh(withRecords: false).set("a", [1])
    let old = try vault.bytes
    try fresh(withRecords: false).set("a", [2])
    #expect(try fresh().get("a") == [2])
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  /// Other programs may use no records, or other ones.
  @Test(arguments: ["a later read", "the end"])
  func anOpenVaultRecordsWhatOtherProgramsWrote(_ occasion: String) throws {
    let uptime = Mutex(Duration.seconds(100))
    let environment = VaultEnvironment(uptime: { uptime.withLock { $0 } })
    let backend = fresh(environment: environment)
    try backend.unlock()
    try fresh(withRecords: false).set("a", [1])
    let first = try vault.bytes
    #expect(try backend.get("a") == [1])
    try fresh(withRecords: false).set("a", [2])
    let second = try vault.bytes
    for _ in 1...2 { #expect(try backend.get("a") == [2]) }
    try restore(first)
    // Nothing was recorded yet, within a second of the last record: that would cost each read two barriers.
    #expect(code { _ = try otherRecords().get("a") } == nil)
    try restore(second)
    if occasion == "the end" {
      try backend.close()
    } else {
      uptime.withLock { $0 += .seconds(1) }
      #expect(try backend.get("a") == [2])
    }
    try restore(first)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    // A state is recorded at once if nothing was recorded for a second.
    try restore(second)
    uptime.withLock { $0 += .seconds(2) }
    try fresh(withRecords: false).set("a", [3])
    #expect(try backend.get("a") == [3])
    try restore(second)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  /// If another process keeps a record locked, the vault waits for the lock, and tries again later.
  @Test(arguments: [true, false], [true, false])
  func aRecordThatIsLockedIsRaisedLater(_ isWaitedFor: Bool, _ writesItself: Bool) throws {
    try fresh().unlock()
    let name = try #require(FileManager.default.contentsOfDirectory(atPath: states.path).first)
    let record = Glibc.open(states.file(name), O_RDWR | O_CLOEXEC)
    defer { close(record) }
    let uptime = Mutex(Duration.seconds(100))
    let environment = VaultEnvironment(
      uptime: { uptime.withLock { $0 } }, sleep: { _ in if isWaitedFor { flock(record, LOCK_UN) } })
    let backend = fresh(environment: environment)
    try backend.unlock()
    let old = try vault.bytes
    try #require(flock(record, LOCK_EX) == 0)
    uptime.withLock { $0 += .seconds(2) }
    if writesItself {
      try backend.set("a", [1])
    } else {
      try fresh(withRecords: false).set("a", [1])
      #expect(try backend.get("a") == [1])
    }
    if !isWaitedFor {
      flock(record, LOCK_UN)
      try backend.close()
    }
    try restore(old)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  /// Opens the vault with a copy of the records, so that the records themselves do not change.
  private func otherRecords() throws -> VaultBackend {
    let copy = states.path + ".copy"
    try? FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: states.path, toPath: copy)
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = copy
    return vault.open(options: options)
  }

  @Test func aProgramThatHasSeenANewerStateAcceptsAnOlderOneIfThePolicyAllows() throws {
    let backend = fresh(firstUse: .versioned)
    try backend.set("a", [1])
    let old = try vault.bytes
    try backend.set("a", [2])
    try restore(old)
    #expect(try backend.get("a") == [1])
  }

  @Test func aRestoredBackupCanBeAccepted() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().set("a", [2])
    try restore(old)
    let accepted = try fresh().trust()
    #expect(try fresh().verify().pin == accepted)
    #expect(try fresh().get("a") == [1])
    try fresh().set("a", [3])
    #expect(try fresh().get("a") == [3])
  }

  // MARK: Forks and other vaults

  @Test(arguments: [3, 6] as [UInt8])
  func aForkIsDetectedByItsTailAlsoIfItIsLonger(_ last: UInt8) throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().set("a", [2])
    try restore(common)
    for value in 3...last { try fresh(withRecords: false).set("a", [value]) }
    let error = #expect(throws: SecretError.self) { _ = try fresh().get("a") }
    #expect(error?.code == .rolledBack && error?.reason.contains(" has another history ") == true)
    #expect(code { try fresh().set("a", [7]) } == .rolledBack)
    #expect(code { _ = try fresh().verify() } == .rolledBack)
  }

  /// A rewrite and a rekey list the changes before them, so they still contradict a state of another history that was
  /// seen.
  @Test(arguments: [false, true]) func aForkIsDetectedAfterItWasRewritten(_ isRekeyed: Bool) throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().set("a", [2])
    let seen = try vault.bytes
    func rewriteTwice() throws {
      for value in 3...4 as ClosedRange<UInt8> {
        if isRekeyed {
          try fresh(withRecords: false).rekey()
        } else {
          try fresh(withRecords: false).compact()
        }
        try fresh(withRecords: false).set("a", [value])
      }
    }
    try restore(common)
    try fresh(withRecords: false).set("a", [2])
    try rewriteTwice()
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    // The same changes on top of the state that was seen are not a fork.
    try restore(seen)
    try rewriteTwice()
    #expect(try fresh().get("a") == [4])
  }

  /// A rewrite that includes changes counts them too, although the file was never in the states in between.
  @Test func aStateThatAForkHasSkippedIsDetected() throws {
    try fresh().set("a", [1])
    let common = try vault.bytes
    try fresh().set("a", [2])
    let seen = try fresh().verify().sequence
    try restore(common)
    let other = fresh(withRecords: false)
    try other.storeWithoutHistory(SecretBytes([3] as [UInt8]), for: identifier("a"), metadata: nil)
    #expect(try other.verify().sequence == seen + 2)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
    try other.set("a", [4])
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func anotherVaultInPlaceIsRefusedBeforeAKeyIsTried() throws {
    try fresh().set("a", [1])
    let other = try TestVault()
    try other.open().set("a", [9])
    try restore(other.bytes)
    #expect(code { _ = try fresh().get("a") } == .unexpectedVault)
    #expect(code { try fresh().set("a", [2]) } == .unexpectedVault)
    #expect(code { try vault.open(.otherKey, options: recording).unlock() } == .unexpectedVault)
    try fresh().trust()
    #expect(try fresh().get("a") == [9])
  }

  // MARK: Links

  /// A vault is recorded under its path without `..` and links in its directories, so every spelling finds the record.
  @Test(arguments: ["test.vault", "sub/../test.vault", "here/test.vault", "here/sub/../here/test.vault"])
  func anOlderCopyBehindALinkIsDetectedHoweverItIsSpelled(_ spelling: String) throws {
    try vault.directory.makeDirectory("sub")
    #expect(symlink(".", vault.directory.file("here")) == 0)
    try fresh().set("a", [1])
    let copy = vault.directory.file(".x.old")
    try write(vault.bytes, to: copy)
    try fresh().set("a", [2])
    #expect(unlink(vault.path) == 0 && symlink(".x.old", vault.path) == 0)
    #expect(code { _ = try fresh(at: vault.directory.file(spelling)).get("a") } == .rolledBack)
    #expect(code { try fresh(at: vault.directory.file(spelling)).set("a", [3]) } == .rolledBack)
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
}
