import CofferCore
import CofferTestSupport
import CofferVault
import FoundationEssentials
import Glibc
import Testing

@Suite struct SharingTests {
  /// The file keeps its inode, as a file that is itself a mount point does.
  @Test func aVaultThatIsCopiedIntoAnOpenFileIsFound() throws {
    let (other, vault) = (try TestVault(.otherKey), try TestVault())
    try vault.open().set("a", [1])
    let backend = VaultBackend(path: other.path, credentials: [FixedCredential.key], options: .cheap)
    #expect(throws: SecretError.self) { try backend.get("a") }
    try Data(vault.bytes).write(to: URL(filePath: other.path))
    #expect(try backend.get("a") == [1])
    #expect(try backend.description().id == vault.open().description().id)
  }

  @Test func twoBackendsSeeEachOthersChanges() throws {
    let vault = try TestVault()
    let (one, two) = (vault.open(), vault.open())
    try one.set("a", [1])
    #expect(try two.get("a") == [1])
    try two.set("a", [2])
    try two.set("b", [3])
    #expect(try one.get("a") == [2])
    try one.compact()
    #expect(try two.get("b") == [3])
    try two.remove(identifier("a"))
    #expect(try one.get("a") == nil)
    try two.compact()
    try one.set("c", [4])
    #expect(try two.items(inService: nil).map(\.identifier.account) == ["b", "c"])
  }

  @Test func aWriterGivesUpAtTheDeadlineWhileTheFileIsLocked() throws {
    let vault = try TestVault()
    let file = open(vault.path, O_RDONLY)
    defer { close(file) }
    #expect(flock(file, LOCK_EX) == 0)
    let backend = vault.open(options: .impatient(.seconds(0.2)))
    let error = #expect(throws: SecretError.self) { try backend.set("a", [1]) }
    #expect(error?.code == .timedOut)
    // Readers take no lock.
    #expect(try backend.get("a") == nil)
    #expect(flock(file, LOCK_UN) == 0)
    try backend.set("a", [1])
    #expect(try backend.get("a") == [1])
  }

  @Test func readersUnderALockShareIt() throws {
    let vault = try TestVault()
    let file = open(vault.path, O_RDONLY)
    defer { close(file) }
    #expect(flock(file, LOCK_SH) == 0)
    let backend = vault.open(options: .impatient(.seconds(0.2)))
    #expect(try backend.verify().secretCount == 0)
    try backend.trust()
  }

  @Test func aWriteGivesUpAtTheDeadlineDuringAnotherThreadsTransaction() throws {
    let vault = try TestVault()
    let backend = vault.open(options: .impatient(.seconds(0.2)))
    try backend.withTransaction { _ throws(SecretError) in
      let ended = DispatchSemaphore(value: 0)
      let code = SharedCode()
      detachThread {
        do throws(SecretError) {
          try backend.remove(SecretIdentifier(service: "s", account: "a"))
        } catch { code.set(error.code) }
        ended.signal()
      }
      ended.wait()
      #expect(code.value == .timedOut)
    }
  }

  @Test func aFileThatReplacesTheVaultIsDetected() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    try FileManager.default.removeItem(atPath: vault.path)
    let missing = #expect(throws: SecretError.self) { try backend.get("a") }
    #expect(missing?.code == .vaultNotFound)
    try VaultBackend.create(at: vault.path, credential: FixedCredential.key.credential)
    let other = #expect(throws: SecretError.self) { try backend.get("a") }
    #expect(other?.code == .unexpectedVault)
    try backend.trust()
    #expect(try backend.get("a") == nil)
    try backend.set("a", [2])
    #expect(try vault.open().get("a") == [2])
  }

  @Test func anOpenBackendDetectsAnOlderCopy() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    let old = try vault.bytes
    try backend.set("a", [2])
    try Data(old).write(to: URL(filePath: vault.path))
    #expect(chmod(vault.path, 0o600) == 0)
    for _ in 0..<2 {
      let error = #expect(throws: SecretError.self) { try backend.get("a") }
      #expect(error?.code == .rolledBack)
      let writing = #expect(throws: SecretError.self) { try backend.set("b", [1]) }
      #expect(writing?.code == .rolledBack)
    }
    // A process that never read the newer state cannot detect it.
    #expect(try vault.open().get("a") == [1])
  }

  @Test func anOpenBackendDetectsAFork() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    let common = try vault.bytes
    try backend.set("a", [2])
    try Data(common).write(to: URL(filePath: vault.path))
    #expect(chmod(vault.path, 0o600) == 0)
    try vault.open().set("a", [3])
    // The fork has the same number of changes, but another last change.
    let error = #expect(throws: SecretError.self) { try backend.get("a") }
    #expect(error?.code == .rolledBack)
  }

  @Test func theRemainsOfAnInterruptedCommitAreIgnoredAndCutOff() throws {
    let vault = try TestVault()
    try vault.open().set("a", [1])
    let size = try vault.bytes.count
    let file = open(vault.path, O_WRONLY | O_APPEND)
    let junk = [UInt8](repeating: 0xAA, count: 1000)
    #expect(write(file, junk, junk.count) == junk.count)
    close(file)
    #expect(try vault.open().get("a") == [1])
    #expect(try vault.open().verify().unacknowledgedBytes == 1000)
    try vault.open().set("b", [2])
    #expect(try vault.open().verify().unacknowledgedBytes == 0)
    #expect(try vault.bytes.count < size + 1000)
  }

  @Test func aDamagedCommitSlotLosesNothing() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    try backend.set("b", [2])
    let whole = try vault.bytes
    func write(_ bytes: [UInt8]) throws {
      try Data(bytes).write(to: URL(filePath: vault.path))
      #expect(chmod(vault.path, 0o600) == 0)
    }
    for slot in 0...1 {
      var bytes = whole
      bytes[4096 * (1 + slot) + 100] ^= 1
      try write(bytes)
      let fresh = vault.open()
      #expect(try fresh.verify().isRecovered && fresh.notices().contains(.recovered))
      #expect(try fresh.get("a") == [1] && fresh.get("b") == [2])
      // The next change writes the damaged slot first.
      try fresh.set("c", [3])
      #expect(try !vault.open().verify().isRecovered && !fresh.notices().contains(.recovered))
      #expect(try vault.open().verify().secretCount == 3)
    }
    var bytes = whole
    for slot in 0...1 { bytes[4096 * (1 + slot) + 100] ^= 1 }
    try write(bytes)
    let error = #expect(throws: SecretError.self) { try vault.open().verify() }
    #expect(error?.code == .tampered)
  }

  @Test func noPlaintextIsInTheFile() throws {
    let vault = try TestVault()
    let backend = vault.open()
    let words = [
      "canaryservice", "canaryaccount", "canarylabel", "canaryname", "canaryattribute", "canaryvalue",
    ]
    func store() throws {
      try backend.store(
        SecretBytes(words[5]),
        for: SecretIdentifier(service: words[0], account: words[1]),
        metadata: SecretMetadata(label: words[2], attributes: [words[3]: words[4]])
      )
    }
    try store()
    try backend.compact()
    try store()
    let text = String(decoding: try vault.bytes, as: Unicode.ASCII.self)
    for word in words { #expect(!text.contains(word)) }
    #expect(text.contains("COF"))
  }
}

/// Runs `body` on a thread outside the cooperative pool, because `body` blocks.
func detachThread(_ body: @escaping @Sendable () -> Void) {
  Dispatch.DispatchQueue(label: "test").async(execute: body)
}

import Dispatch
import Synchronization

final class SharedCode: Sendable {
  private let code = Mutex<SecretError.Code?>(nil)
  var value: SecretError.Code? { code.withLock { $0 } }
  func set(_ new: SecretError.Code) { code.withLock { $0 = new } }
}
