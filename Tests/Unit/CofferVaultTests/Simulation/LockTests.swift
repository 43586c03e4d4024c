import CofferSystem
import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// Two writers on a simulated disk, step by step.
@Suite struct LockTests {
  private let disk = SimulatedDisk()

  /// `sleep` is called while a writer waits for the lock.
  private func environment(sleep: @escaping @Sendable () -> Void = {}) -> VaultEnvironment {
    let clock = Clock()
    return VaultEnvironment(
      fileSystem: disk, user: 0, uptime: { clock.uptime },
      sleep: { duration in
        clock.uptime += max(duration, .milliseconds(10))
        sleep()
      })
  }

  private final class Clock: @unchecked Sendable {  // each test has one thread
    var uptime = Duration.zero
  }

  /// Keeps a file open and locked.
  private final class Held: @unchecked Sendable {  // each test has one thread
    var file: (any File)?
  }

  private func open(_ environment: VaultEnvironment) -> VaultBackend {
    VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: .impatient(.seconds(1)),
      environment: environment)
  }

  private func locked(writing bytes: [UInt8] = []) throws -> any File {
    let file = try disk.locate("vault", followingLink: true).directory.open("vault", writable: true)
    #expect(try file.tryLock(exclusive: true))
    let written = try bytes.withUnsafeBytes { try file.write($0, at: file.status().size) }
    #expect(written == bytes.count)
    return file
  }

  init() throws {
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: environment())
    try open(environment()).set("a", [1])
  }

  /// Bytes after the end may belong to a commit in progress.
  @Test func aWaitingWriterChangesNothing() throws {
    let writer = try locked(writing: [UInt8](repeating: 0xAA, count: 500))
    let before = disk.content(of: "vault")
    let error = #expect(throws: SecretError.self) { try open(environment()).set("a", [2]) }
    #expect(error?.code == .timedOut)
    #expect(disk.content(of: "vault") == before)
    try writer.unlock()
    try open(environment()).set("a", [2])
    #expect(try open(environment()).verify().unacknowledgedBytes == 0)
  }

  /// Whoever types a passphrase for longer than the timeout still waits for the lock as long.
  @Test func theWaitForTheLockBeginsAfterThePrompt() throws {
    let (held, clock) = (Held(), Clock())
    held.file = try locked()
    let environment = VaultEnvironment(
      fileSystem: disk, user: 0, uptime: { clock.uptime },
      sleep: { _ in
        do { try held.file?.unlock() } catch { Issue.record(error) }
      })
    let slow = VaultCredentialSource("a slow person") { _ throws(SecretError) in
      clock.uptime += .seconds(60)
      return FixedCredential.key.credential
    }
    let backend = VaultBackend(
      path: "vault", credentials: [slow], options: .impatient(.seconds(1)), environment: environment)
    try backend.set("a", [2])
    #expect(try backend.get("a") == [2])
  }

  /// A file that replaced the vault while a writer waited has its own lock.
  @Test func theLockOfAReplacedFileDoesNotCount() throws {
    let (first, second) = (Held(), Held())
    first.file = try locked()
    let disk = disk
    let other = open(environment())
    let waiting = open(
      environment(sleep: {
        guard let file = first.file else { return }
        first.file = nil
        do {
          try file.unlock()
          try other.compact()
          // A third writer locks the new file.
          second.file = try disk.locate("vault", followingLink: true).directory.open("vault", writable: true)
          guard try second.file?.tryLock(exclusive: true) == true else { throw FileSystemError(EBUSY) }
        } catch { Issue.record(error) }
      }))
    let error = #expect(throws: SecretError.self) { try waiting.set("a", [2]) }
    #expect(error?.code == .timedOut)
    #expect(second.file != nil)
    #expect(try open(environment()).get("a") == [1])
    second.file = nil
    try waiting.set("a", [3])
    #expect(try open(environment()).get("a") == [3])
  }

  /// The file that the reader waited for was replaced, so its state is older than the newest one.
  @Test func aReaderThatWaitedReadsTheCurrentFile() throws {
    let first = Held()
    first.file = try locked()
    let other = open(environment())
    let waiting = open(
      environment(sleep: {
        guard let file = first.file else { return }
        first.file = nil
        do {
          try file.unlock()
          try other.compact()
          try other.set("a", [2])
        } catch { Issue.record(error) }
      }))
    let found = try waiting.verify()
    #expect(first.file == nil)
    #expect(try found.pin == open(environment()).verify().pin)
  }

  /// No other process can write from the first read of the commit slots until the change is durable.
  @Test func theLockIsHeldDuringAWholeTransaction() throws {
    let vault = open(environment())
    try vault.withTransaction { transaction throws(SecretError) in
      let error = #expect(throws: SecretError.self) { try open(environment()).set("a", [2]) }
      #expect(error?.code == .timedOut)
    }
  }
}
