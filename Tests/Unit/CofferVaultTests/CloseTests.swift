import CofferCore
import CofferTestSupport
import CofferVault
import Dispatch
import Foundation
import Glibc
import Testing

/// A closed vault keeps neither its file nor its keys, and still knows what it has seen.
@Suite struct CloseTests: KnownVaultSuite {
  let vault: TestVault
  let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
  }

  /// The descriptors of this process that refer to the vault.
  private func descriptors() throws -> Int {
    let path = URL(filePath: vault.path).resolvingSymlinksInPath().path()
    return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
      var buffer = [CChar](repeating: 0, count: 4096)
      let count = readlink("/proc/self/fd/\(name)", &buffer, 4095)
      return count > 0
        && String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) == path
    }
  }

  @Test func theFileIsClosedAndTheNextCallAsksForACredentialAgain() throws {
    let asked = Count()
    let backend = VaultBackend(
      path: vault.path, credentials: [FixedCredential.counted(asked)], options: .cheap)
    try backend.set("a", [1])
    #expect(try descriptors() == 1)
    #expect(asked.value == 1)
    try backend.close()
    try backend.close()
    #expect(try descriptors() == 0)
    #expect(try backend.get("a") == [1])
    #expect(try descriptors() == 1)
    #expect(asked.value == 2)
  }

  /// A read beside a transaction opens a view of the file, which is kept for the next read.
  @Test func aReaderBesideATransactionKeepsNothingAfterClosing() throws {
    let backend = vault.open()
    try backend.set("a", [1])
    try backend.withTransaction { _ in
      let end = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        #expect(throws: Never.self) { try backend.get("a") }
        end.signal()
      }
      end.wait()
    }
    #expect(try descriptors() > 0)
    try backend.close()
    #expect(try descriptors() == 0)
  }

  @Test func closingAVaultThatIsNotOpenNeedsNoFile() throws {
    let backend = VaultBackend(path: states.file("none.vault"), credentials: [], options: .cheap)
    try backend.close()
  }

  @Test func closingInATransactionOfTheVaultIsAConflict() throws {
    let backend = vault.open()
    try backend.withTransaction { _ throws(SecretError) in
      #expect(code { try backend.close() } == .conflict)
    }
  }

  @Test func anOlderCopyIsRefusedAfterClosing() throws {
    let backend = fresh(withRecords: false)
    try backend.set("a", [1])
    let old = try vault.bytes
    try backend.set("a", [2])
    try backend.close()
    try restore(old)
    #expect(code { _ = try backend.get("a") } == .rolledBack)
  }

  @Test func anotherVaultIsRefusedAfterClosing() throws {
    let backend = fresh(withRecords: false)
    try backend.set("a", [1])
    try backend.close()
    try restore(TestVault().bytes)
    #expect(code { _ = try backend.get("a") } == .unexpectedVault)
  }

  @Test func aMasterKeyThatAnotherProcessChangedIsAcceptedAfterClosing() throws {
    let backend = fresh(withRecords: false)
    try backend.set("a", [1])
    try backend.close()
    try fresh(withRecords: false).rekey()
    #expect(try backend.get("a") == [1])
  }

  @Test func aCopyFromBeforeARekeyIsRefusedAfterClosing() throws {
    let backend = fresh(withRecords: false)
    try backend.set("a", [1])
    let old = try vault.bytes
    try backend.rekey()
    try backend.close()
    try restore(old)
    #expect(code { _ = try backend.get("a") } == .unexpectedKey)
  }

  @Test func aStreamOfChangesGoesOnAfterClosing() async throws {
    let backend = vault.open()
    try backend.set("a", [1])
    let changes = backend.changes()
    try backend.close()
    try vault.open().set("a", [2])
    for await _ in changes where try backend.get("a") == [2] { break }
  }
}
