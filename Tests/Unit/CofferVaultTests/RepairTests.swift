import CofferCore
import CofferSimulation
import CofferSystem
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Foundation
import Glibc
import Synchronization
import Testing

/// The effects of a change on the whole file: it repairs a slot, and rewrites the file when that is due.
@Suite struct RepairTests {
  private func header(_ vault: TestVault) throws -> VaultFile {
    try VaultFile(LocalMedium(path: vault.path, environment: VaultEnvironment()).open())
  }

  @Test(arguments: [0, 1]) func aDamagedSlotThatAChangeRepairedIsStillReported(_ slot: Int) throws {
    let vault = try TestVault()
    try vault.open().set("a", [1])
    var bytes = try vault.bytes
    bytes[try header(vault).headerLength + slot * Layout.pageSize + 100] ^= 1
    try Data(bytes).write(to: URL(filePath: vault.path))
    let backend = vault.open()
    try backend.set("a", [2])
    #expect(try backend.get("a") == [2])
    #expect(try backend.lastNotices()?.contains(.recovered) == true, "the program still has to tell it")
    let later = vault.open()
    #expect(try later.get("a") == [2])
    #expect(try later.lastNotices()?.contains(.recovered) == false, "the change has repaired the slot")
  }

  /// Another process may be writing the slot.
  @Test func aSlotThatBecomesInvalidIsLookedAtAgainUnderALock() throws {
    let vault = try TestVault()
    try vault.open().set("a", [1])
    let backend = vault.open(options: .impatient(.seconds(0.2)))
    #expect(try backend.get("a") == [1])
    let file = open(vault.path, O_RDWR | O_CLOEXEC)
    defer { close(file) }
    #expect(flock(file, LOCK_EX) == 0)
    let zeros = [UInt8](repeating: 0, count: Layout.pageSize)
    #expect(pwrite(file, zeros, zeros.count, try header(vault).headerLength) == zeros.count)
    let error = #expect(throws: SecretError.self) { _ = try backend.get("a") }
    #expect(error?.code == .timedOut)
    #expect(error?.reason.contains("Another process, \(getpid()) of user \(geteuid()), kept the vault") == true)
    #expect(flock(file, LOCK_UN) == 0)
    #expect(try backend.get("a") == [1])
    #expect(try backend.notices().contains(.recovered))
  }

  /// The real disk, where some calls fail.
  private struct FailingFileSystem: FileSystem {
    var creations: Count?
    /// After a rename, the directory's barrier fails.
    var renames: Count?

    func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
      let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
      return Location(
        directory: FailingDirectory(directory: location.directory, fileSystem: self), name: location.name,
        path: location.path)
    }

    private struct FailingDirectory: PassingDirectory {
      let directory: any Directory
      let fileSystem: FailingFileSystem

      func create(_ name: String) throws(FileSystemError) -> any File {
        guard let creations = fileSystem.creations else { return try directory.create(name) }
        creations.add()
        throw FileSystemError(ENOSPC)
      }

      func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError) {
        try directory.rename(name, to: newName, replacing: replacing)
        fileSystem.renames?.add()
      }

      func synchronize() throws(FileSystemError) {
        if let renames = fileSystem.renames, renames.value > 0 { throw FileSystemError(EIO) }
        try directory.synchronize()
      }
    }
  }

  @Test func aRewriteThatFailedIsTriedAgainWhenTheTailIsTwiceAsLong() throws {
    let vault = try TestVault()
    let attempts = Count()
    var environment = VaultEnvironment(fileSystem: FailingFileSystem(creations: attempts))
    environment.compactionThreshold = 1000
    let backend = vault.open(environment: environment)
    for number in 0..<40 { try backend.set("\(number)", [1]) }
    // Rewrites are tried at about 1,000, 2,000, 4,000 and 8,000 bytes.
    #expect((3...5).contains(attempts.value))
    #expect(try vault.open().verify().secretCount == 40)
  }

  /// A purge must rewrite the file, because only a new file lacks the earlier versions.
  @Test func aPurgeThatCannotWriteANewFileFails() throws {
    let vault = try TestVault()
    try vault.open().set("a", [1])
    let backend = vault.open(environment: VaultEnvironment(fileSystem: FailingFileSystem(creations: Count())))
    let error = #expect(throws: SecretError.self) { try backend.erase(identifier("a")) }
    #expect(error?.code == .io)
    #expect(try backend.get("a") == [1])
  }

  @Test func aReplacementWhoseLastBarrierFailedIsReportedAsSuch() throws {
    let vault = try TestVault()
    let backend = vault.open(
      environment: VaultEnvironment(fileSystem: FailingFileSystem(renames: Count())))
    let error = #expect(throws: SecretError.self) { try backend.compact() }
    #expect(error?.code == .io)
    #expect(error?.reason.hasPrefix("The change is in the vault at \(vault.path), but may be lost") == true)
  }

  @Test func aTransactionWithoutChangesWritesNothing() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    let before = try vault.bytes
    try backend.withTransaction { transaction throws(SecretError) in
      _ = try transaction.lookUp(SecretIdentifier(service: "tests", account: "a"))
    }
    #expect(try vault.bytes == before)
  }

  /// A reader reads whole blocks, so no block may be much larger than the limit.
  @Test func aRewriteFillsBlocksUpToTheirLimit() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.withTransaction { transaction throws(SecretError) in
      for number in 0..<400 {
        try transaction.store(
          SecretBytes([1] as [UInt8]),
          for: SecretIdentifier(service: "tests", account: "\(number)"), metadata: nil)
      }
    }
    try backend.compact()
    let blocks = try VaultAnatomy(vault.bytes).blocks
    #expect(blocks.count > 2)
    for block in blocks {
      #expect(block.count <= Layout.blockTarget + Layout.sealOverhead)
      // A block ends where the next record would exceed the limit.
      if block != blocks.last { #expect(block.count > Layout.blockTarget - 200) }
    }
  }

  @Test func aVaultLargerThanTheBufferOfARewriteIsWhole() throws {
    let vault = try TestVault()
    let backend = vault.open()
    let values = (0..<5).map { index in [UInt8](repeating: UInt8(index), count: 600_000 + index) }
    for (index, value) in values.enumerated() { try backend.set("n\(index)", value) }
    try backend.compact()
    let other = vault.open()
    for (index, value) in values.enumerated() { #expect(try other.get("n\(index)") == value) }
    #expect(try other.verify().secretCount == values.count)
  }

  /// The system may have dropped pages that it could not write. Opening the same file again does not bring them back.
  @Test(arguments: [false, true]) func afterAFailedBarrierAChangeGoesToANewFile(isClosed: Bool) throws {
    let disk = try SimulatedDisk.withVault()
    let backend = disk.openVault()
    try backend.set("a", [1])
    let file = disk.inode(of: "vault")
    disk.refuse(.synchronize, EIO)
    #expect(thrown { () throws(SecretError) in try backend.remove(identifier("a")) }?.code == .io)
    disk.refuse(.synchronize, nil)
    if isClosed { try backend.close() }
    try backend.set("a", [2])
    #expect(disk.inode(of: "vault") != file)
  }

  /// Returns the number of changes up to the one that rewrites the file, the size of the last appended change, and the
  /// size of the base before the first change.
  private func changesUntilRewrite(
    _ value: [UInt8], threshold: Int, secretsInBase: Int = 0
  ) throws -> (changes: Int, growth: Int, base: Int) {
    let disk = try SimulatedDisk.withVault()
    var environment = VaultEnvironment(fileSystem: disk, user: 0)
    environment.compactionThreshold = threshold
    let backend = VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: .cheap, environment: environment)
    for number in 0..<secretsInBase { try backend.set("base \(number)", value) }
    try backend.compact()
    func size() -> Int { disk.content(of: "vault")?.count ?? 0 }
    let (file, base) = (disk.inode(of: "vault"), size() - 12_288)
    var growth = 0
    for change in 1...400 {
      let before = size()
      try backend.set("n\(change)", value)
      if disk.inode(of: "vault") != file { return (change, growth, base) }
      growth = size() - before
    }
    return (0, growth, base)
  }

  /// Every reader reads the whole tail except its values, so the 72 bytes of a value do not count.
  @Test func aTailThatIsLongToReadIsRewritten() throws {
    let (changes, growth, _) = try changesUntilRewrite([1], threshold: .max)
    #expect(changes == 32_768 / (growth - 72) + 1)
  }

  @Test(arguments: [(20_000, 0), (20_000, 10), (200_000, 10)])
  func aTailThatIsLongerThanTheBaseAndTheThresholdIsRewritten(_ threshold: Int, _ secrets: Int) throws {
    let (changes, growth, base) = try changesUntilRewrite(
      [UInt8](repeating: 1, count: 10_000), threshold: threshold, secretsInBase: secrets)
    #expect((base > 100_000) == (secrets == 10))
    #expect(changes == max(threshold, base) / growth + 1)
  }

  @Test func noCredentialIsAskedForAgainAfterARewriteByTheSameProcess() throws {
    let vault = try TestVault()
    let asked = Count()
    let backend = VaultBackend(
      path: vault.path, credentials: [FixedCredential.counted(asked)], options: .cheap)
    try backend.set("a", [1])
    try backend.compact()
    #expect(try backend.get("a") == [1])
    #expect(asked.value == 1)
    try backend.rekey()
    let before = asked.value
    #expect(try backend.get("a") == [1])
    try backend.set("a", [2])
    #expect(asked.value == before)
  }

  @Test func aChangeThatFailsInATransactionIsNotCounted() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    try backend.compact()
    try backend.set("a", [2])
    let block = try VaultAnatomy(vault.bytes).blocks[0]
    func flip() throws {
      let byte = try vault.bytes[block.lowerBound]
      let file = try FileHandle(forWritingTo: URL(filePath: vault.path))
      try file.seek(toOffset: UInt64(block.lowerBound))
      try file.write(contentsOf: [byte ^ 1])
    }
    try flip()
    // The newest record of the secret is in the tail, and its history in the damaged block.
    var failure: SecretError?
    try vault.open().withTransaction { transaction throws(SecretError) in
      do throws(SecretError) { try transaction.remove(identifier("a")) } catch { failure = error }
      do { try flip() } catch { throw SecretError(.io, "\(error)") }
      try transaction.store(SecretBytes("z"), for: identifier("z"))
    }
    #expect(failure?.code == .tampered)
    #expect(try vault.open().verify().secretCount == 2)
  }

  @Test func withoutPromptsOnlyOtherSourcesAreAsked() throws {
    let vault = try TestVault()
    let asked = Mutex(0)
    let prompt = VaultCredentialSource("a prompt", mayPrompt: true) { _ throws(SecretError) in
      asked.withLock { $0 += 1 }
      return FixedCredential.key.credential
    }
    let wrong = VaultCredentialSource("a wrong key") { _ throws(SecretError) in
      FixedCredential.otherKey.credential
    }
    func backend(_ sources: [VaultCredentialSource]) -> VaultBackend {
      VaultBackend(path: vault.path, credentials: sources, options: .cheap)
    }
    for sources in [[prompt], [wrong, prompt], [prompt, wrong]] as [[VaultCredentialSource]] {
      let quiet = backend(sources).withoutPrompts
      let error = thrown { () throws(SecretError) in _ = try quiet.lookUp(identifier("a")) }
      #expect(error?.code == .locked && asked.withLock { $0 } == 0)
    }
    #expect(try backend([prompt, FixedCredential.key]).withoutPrompts.lookUp(identifier("a")) == nil)
    #expect(asked.withLock { $0 } == 0)

    // Both backends use the same open vault.
    let loud = backend([prompt])
    let quiet = try #require(loud.withoutPrompts as? VaultBackend).withoutPrompts
    try loud.set("a", [1])
    #expect(try quiet.lookUp(identifier("a"))?.array() == [1] && asked.withLock { $0 } == 1)
    try vault.open().rekey()
    #expect(thrown { () throws(SecretError) in try quiet.remove(identifier("a")) }?.code == .locked)
    #expect(try loud.get("a") == [1] && asked.withLock { $0 } == 2)
    #expect(try quiet.remove(identifier("a")))
    let refused = backend([prompt]).withoutPrompts as? VaultBackend
    #expect(thrown { () throws(SecretError) in try refused?.trust() }?.code == .locked)
    #expect(thrown { () throws(SecretError) in try refused?.rekey() }?.code == .locked)
    let opened = backend([FixedCredential.otherKey, prompt])
    try opened.unlock()
    let asking = asked.withLock { $0 }
    let editor = opened.withoutPrompts as? VaultBackend
    #expect(thrown { () throws(SecretError) in try editor?.rekey() } != nil)
    #expect(asked.withLock { $0 } == asking)
  }

  @Test func invalidInputIsRefusedBeforeTheVaultIsOpened() throws {
    let vault = try TestVault()
    let backend = vault.open(nil)
    let metadata = SecretMetadata(label: String(repeating: "a", count: 100_000))
    let invalid = thrown { () throws(SecretError) in
      try backend.store(SecretBytes([1]), for: identifier("a"), metadata: metadata)
    }
    #expect(invalid?.code == .invalidMetadata)
    let large = SecretBytes(count: VaultBackend.maximumSecretSize + 1) { _ in }
    let tooLarge = thrown { () throws(SecretError) in
      try backend.store(large, for: identifier("a"))
    }
    #expect(tooLarge?.code == .tooLarge)
    let locked = thrown { () throws(SecretError) in
      try backend.store(SecretBytes([1]), for: identifier("a"))
    }
    #expect(locked?.code == .locked)
  }

  /// Otherwise one passphrase would get two slots, and removing one of them would not revoke it.
  @Test func aSlotThatCannotBeTriedStopsTheAdditionOfItsCredential() throws {
    let vault = try TestVault()
    let passphrase = FixedCredential(kind: .passphrase("one"))
    var costly = VaultOptions.cheap
    costly.passphraseMemory = 4 << 20
    try vault.open(options: costly).addKeySlot(passphrase.credential)
    var environment = VaultEnvironment()
    environment.memoryLeft = { 1 << 20 }
    let backend = vault.open(environment: environment)
    #expect(throws: SecretError.self) { try backend.addKeySlot(passphrase.credential) }
    #expect(try VaultBackend(path: vault.path, credentials: []).description().keySlots.count == 2)
  }
}
