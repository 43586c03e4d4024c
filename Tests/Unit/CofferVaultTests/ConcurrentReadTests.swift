import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import Dispatch
import Foundation
import Synchronization
import Testing

/// Reads of a vault while another thread uses the same object.
@Suite(.timeLimit(.minutes(30))) struct ConcurrentReadTests {
  let vault: TestVault
  let backend: VaultBackend

  init() throws {
    vault = try TestVault()
    // A read that has to wait for the object times out soon.
    backend = vault.open(options: Self.impatient)
    try backend.set("a", [1])
  }

  private static let impatient = VaultOptions.impatient(.seconds(2))

  private enum Outcome: Equatable {
    case value([UInt8]?)
    case error(SecretError.Code)
  }

  /// Reads on another thread and waits for the result.
  private func readElsewhere(_ account: String = "a", in backend: VaultBackend? = nil) -> Outcome {
    let backend = backend ?? self.backend
    return elsewhere { () throws(SecretError) in
      .value(try backend.lookUp(identifier(account))?.array())
    }
  }

  /// Runs `body` on another thread and waits for its end.
  private func elsewhere(_ body: @escaping @Sendable () throws(SecretError) -> Outcome) -> Outcome {
    let end = DispatchSemaphore(value: 0)
    let box = OutcomeBox()
    Thread.detachNewThread {
      do throws(SecretError) { box.set(try body()) } catch { box.set(.error(error.code)) }
      end.signal()
    }
    end.wait()
    return box.value
  }

  private final class OutcomeBox: Sendable {
    private let outcome = Mutex(Outcome.value(nil))
    var value: Outcome { outcome.withLock { $0 } }
    func set(_ new: Outcome) { outcome.withLock { $0 = new } }
  }

  /// Calls `body` while this thread uses the object, and no lock of the file is held.
  private func whileInUse(_ body: () throws -> Void) throws {
    var failure: (any Error)?
    try backend.withMasterKey { _, _ in
      do { try body() } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// A vault on a simulated disk, with two objects.
  private func simulated() throws -> (SimulatedDisk, VaultBackend, VaultBackend) {
    let disk = try SimulatedDisk.withVault()
    return (disk, disk.openVault(options: Self.impatient), disk.openVault(options: Self.impatient))
  }

  private func writeInPlace(_ bytes: [UInt8]) throws {
    let file = try FileHandle(forWritingTo: URL(filePath: vault.path))
    try file.write(contentsOf: bytes)
    try file.truncate(atOffset: UInt64(bytes.count))
  }

  // MARK: No waiting

  @Test func readsDoNotWaitForATransactionOfAnotherThread() throws {
    try backend.set("b", [5])
    let backend = backend
    try backend.withTransaction { transaction in
      try transaction.store(SecretBytes([2]), for: identifier("a"))
      #expect(readElsewhere() == .value([1]))
      #expect(readElsewhere("absent") == .value(nil))
      let count = elsewhere { () throws(SecretError) in
        .value([UInt8(try backend.items(inService: nil).count)])
      }
      #expect(count == .value([2]))
    }
    #expect(readElsewhere() == .value([2]))
  }

  @Test func readsDoNotWaitForTheFirstTransactionOfAnObject() throws {
    let backend = vault.open(options: Self.impatient)
    try backend.withTransaction { _ in #expect(readElsewhere(in: backend) == .value([1])) }
  }

  /// Another thread can read during every system call of a change, even during its barriers.
  @Test func aReadEndsAtEveryStepOfAnotherThreadsChange() throws {
    let (disk, backend, _) = try simulated()
    try backend.set("a", [0])
    let before = disk.calls
    try backend.set("a", [1])
    let steps = disk.calls - before
    #expect(steps > 5)
    var newer = 0
    for step in 1...steps {
      let (old, new) = (UInt8(step), UInt8(step + 1))
      disk.interrupt(atCall: disk.calls + step) {
        let outcome = self.readElsewhere(in: backend)
        #expect(outcome == .value([old]) || outcome == .value([new]), "step \(step)")
        if outcome == .value([new]) { newer += 1 }
      }
      try backend.set("a", [new])
      #expect(readElsewhere(in: backend) == .value([new]))
    }
    // The commit is visible before its last barrier, as it is for other processes.
    #expect(newer > 0)
  }

  // MARK: Nothing older

  /// Only a reader saw the newer state, and the older bytes are in the same file: only the process's memory shows the
  /// rollback.
  @Test func theObjectAcceptsNothingOlderThanAReaderHasSeen() throws {
    let old = try vault.bytes
    let other = vault.open()
    try whileInUse {
      try other.set("a", [2])
      #expect(readElsewhere() == .value([2]))
    }
    try writeInPlace(old)
    for _ in 0..<2 {
      #expect(readElsewhere() == .error(.rolledBack))
      #expect(thrown { () throws(SecretError) in try backend.remove(identifier("a")) }?.code == .rolledBack)
    }
    // A process that has not seen the newer state cannot tell.
    #expect(readElsewhere(in: vault.open()) == .value([1]))
  }

  @Test func theObjectAcceptsNoForkOfWhatAReaderHasSeen() throws {
    let old = try vault.bytes
    let other = vault.open()
    try whileInUse {
      try other.set("a", [2])
      #expect(readElsewhere() == .value([2]))
    }
    try writeInPlace(old)
    try vault.open().set("a", [3])
    #expect(readElsewhere() == .error(.rolledBack))
  }

  @Test func aReaderAcceptsNothingOlderThanTheObjectHasSeen() throws {
    let old = try vault.bytes
    try backend.set("a", [2])
    try whileInUse {
      try writeInPlace(old)
      // The reader leaves the decision to the object, which is in use.
      #expect(readElsewhere() == .error(.timedOut))
    }
    #expect(readElsewhere() == .error(.rolledBack))
  }

  /// The second reader begins during the first one's read, so it opens a view of the file that has seen nothing.
  @Test func aReaderAcceptsNothingOlderThanAnotherReaderHasSeen() throws {
    let (disk, backend, other) = try simulated()
    try backend.set("a", [1])
    let old = try #require(disk.content(of: "vault"))
    try backend.withMasterKey { _, _ in
      do { try other.set("a", [2]) } catch { Issue.record(error) }
      #expect(readElsewhere(in: backend) == .value([2]))
      let before = disk.calls
      #expect(readElsewhere(in: backend) == .value([2]))
      // The last call reads the value.
      disk.interrupt(atCall: 2 * disk.calls - before) {
        disk.overwrite("vault", with: old)
        #expect(readElsewhere(in: backend) == .error(.timedOut))
      }
      #expect(readElsewhere(in: backend) == .error(.timedOut))
    }
    #expect(readElsewhere(in: backend) == .error(.rolledBack))
  }

  @Test func aReaderDoesNotFollowAPathToAnotherFile() throws {
    let old = try vault.bytes
    try whileInUse {
      try Data(old).write(to: URL(filePath: vault.path), options: .atomic)
      #expect(readElsewhere() == .error(.timedOut))
    }
  }

  /// The damage may have undone the last change. Only the object checks that, and reports it.
  @Test func aReaderLeavesADamagedSlotToTheObject() throws {
    var bytes = try vault.bytes
    // The first slot follows the header's page.
    bytes[4096] ^= 1
    try whileInUse {
      try writeInPlace(bytes)
      #expect(readElsewhere() == .error(.timedOut))
    }
    #expect(readElsewhere() == .value([1]))
    #expect(try backend.notices().contains(.recovered))
  }

  @Test func trustAppliesToTheReaders() throws {
    let old = try vault.bytes
    try backend.set("a", [2])
    try writeInPlace(old)
    #expect(readElsewhere() == .error(.rolledBack))
    try backend.trust()
    try whileInUse { #expect(readElsewhere() == .value([1])) }
    try backend.set("a", [3])
    try whileInUse { #expect(readElsewhere() == .value([3])) }
  }

  /// A read begins before `trust` and ends after it.
  @Test func trustForgetsWhatAReadInProgressHasSeen() throws {
    let (disk, backend, other) = try simulated()
    try backend.set("a", [1])
    let old = try #require(disk.content(of: "vault"))
    let (paused, goOn, end) = (
      DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )
    try backend.withMasterKey { _, _ in
      // The first read opens a view of the file, which the later ones use.
      var (before, calls) = (0, 0)
      for value in [2, 3] as [UInt8] {
        #expect(throws: Never.self) { try other.set("a", [value]) }
        before = disk.calls
        #expect(readElsewhere(in: backend) == .value([value]))
        calls = disk.calls - before
      }
      #expect(throws: Never.self) { try other.set("a", [4]) }
      // Interrupts the read before its last call, which reads the value: it has read the commit slots by then.
      disk.interrupt(atCall: disk.calls + calls - 1) {
        paused.signal()
        goOn.wait()
      }
      Thread.detachNewThread {
        _ = self.readElsewhere(in: backend)
        end.signal()
      }
      paused.wait()
    }
    var bytes = try #require(disk.content(of: "vault"))
    bytes.replaceSubrange(4096..<3 * 4096, with: old[4096..<3 * 4096])
    disk.overwrite("vault", with: bytes)
    try backend.trust()
    goOn.signal()
    end.wait()
    #expect(readElsewhere(in: backend) == .value([1]))
    try backend.withMasterKey { _, _ in #expect(readElsewhere(in: backend) == .value([1])) }
  }

  @Test func aReaderReadsWithTheKeysOfARekeyedVault() throws {
    try backend.rekey()
    #expect(readElsewhere() == .value([1]))
    try whileInUse { #expect(readElsewhere() == .value([1])) }
    try whileInUse {
      try vault.open().rekey()
      // A reader has no credentials.
      #expect(readElsewhere() == .error(.timedOut))
    }
    #expect(readElsewhere() == .value([1]))
    try whileInUse { #expect(readElsewhere() == .value([1])) }
  }

  // MARK: Many threads

  /// A read that begins after another one has ended returns the same value or a later one.
  @Test func manyThreadsNeverSeeTheVaultGoBack() {
    let backend = backend
    let newest = Newest()
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      do {
        for round in 1...150 as ClosedRange<UInt8> {
          if thread == 0 {
            try backend.set("a", [round])
            newest.raise(to: round)
          } else {
            let before = newest.value
            let value = try backend.get("a")?.first ?? 0
            #expect(value >= before)
            newest.raise(to: value)
          }
        }
      } catch { Issue.record(error) }
    }
    #expect(newest.value == 150)
  }

  private final class Newest: Sendable {
    private let highest = Mutex<UInt8>(1)
    var value: UInt8 { highest.withLock { $0 } }
    func raise(to value: UInt8) { highest.withLock { $0 = max($0, value) } }
  }

  /// While a call of the object looks at the path, a reader sees a newer state, and then an older file replaces the
  /// vault. The call must not accept the older file.
  @Test func whatAReaderSeesDuringACallCountsForTheCall() throws {
    let vault = try TestVault()
    let fileSystem = WatchedFileSystem()
    let backend = vault.open(environment: VaultEnvironment(fileSystem: fileSystem))
    try backend.unlock()
    let other = vault.open()
    try other.set("a", [1])
    let older = try vault.bytes
    let before = fileSystem.looks
    let end = fileSystem.holdNextLook()
    let (result, ended) = (SharedCode(), DispatchSemaphore(value: 0))
    detachThread {
      do throws(SecretError) {
        _ = try backend.lookUp(SecretIdentifier(service: "tests", account: "a"))
      } catch { result.set(error.code) }
      ended.signal()
    }
    try waitUntil("the call did not look at the path") { fileSystem.looks > before }
    try other.set("a", [2])
    #expect(try backend.get("a") == [2])
    let copy = vault.directory.file("copy")
    try Data(older).write(to: URL(filePath: copy))
    #expect(chmod(copy, 0o600) == 0)
    #expect(rename(copy, vault.path) == 0)
    end.signal()
    ended.wait()
    #expect(result.value == .rolledBack)
  }

  @Test func readersHideNoChange() async throws {
    var changes = backend.changes().makeAsyncIterator()
    let other = vault.open()
    try whileInUse {
      try other.set("a", [2])
      #expect(readElsewhere() == .value([2]))
      try other.compact()
    }
    #expect(try backend.get("a") == [2])
    #expect(await changes.next() != nil)
  }
}
