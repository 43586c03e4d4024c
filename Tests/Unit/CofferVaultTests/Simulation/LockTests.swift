import CofferSystem
import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// What one writer may do while another is at work, step by step on a simulated disk.
@Suite struct LockTests {
  private let disk = SimulatedDisk()

  /// `sleep` is called with the time a waiting writer has slept so far.
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

  /// What a test keeps open, to keep a file locked.
  private final class Held: @unchecked Sendable {  // each test has one thread
    var file: (any File)?
  }

  private func open(_ environment: VaultEnvironment) -> VaultBackend {
    var options = VaultOptions.cheap
    options.lockTimeout = .seconds(1)
    return VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: options, environment: environment)
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

  /// What stands beyond the end may be a writer's that is not done yet.
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

  /// A file that took the vault's place while a writer waited is another file, with a lock of its own.
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
          // A third writer is at work in the new file.
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

  /// A reader that waits for a file, and finds another in its place, reads that: the one it waited for is older, and
  /// older than what is remembered of the vault by then.
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
    #expect(try found.checkpoint == open(environment()).verify().checkpoint)
  }

  /// Nobody else may write from before the slots are read until the change is durable.
  @Test func theLockIsHeldDuringAWholeTransaction() throws {
    let vault = open(environment())
    try vault.transaction { transaction throws(SecretError) in
      let error = #expect(throws: SecretError.self) { try open(environment()).set("a", [2]) }
      #expect(error?.code == .timedOut)
    }
  }
}
