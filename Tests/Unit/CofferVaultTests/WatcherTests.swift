import CofferCore
import CofferSystem
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization
import Testing

/// When a vault whose changes are observed is looked at, and which changes are reported.
@Suite(.timeLimit(.minutes(30))) struct WatcherTests {
  private let vault: TestVault
  private let fileSystem = WatchedFileSystem()

  init() throws { vault = try TestVault() }

  private func backend(
    _ credentials: [VaultCredentialSource] = [FixedCredential.key], period: Duration = .seconds(3600)
  ) -> VaultBackend {
    var environment = VaultEnvironment(fileSystem: fileSystem)
    environment.watchPeriod = period
    return VaultBackend(
      path: vault.path, credentials: credentials, options: .cheap, environment: environment)
  }

  /// The changes that a stream has reported so far.
  private final class Reported: Sendable {
    private let changes = Mutex<[SecretChange]>([])
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(_ stream: AsyncStream<SecretChange>) {
      let task = Task { for await change in stream { changes.withLock { $0.append(change) } } }
      self.task.withLock { $0 = task }
    }

    deinit { task.withLock { $0?.cancel() } }

    var all: [SecretChange] { changes.withLock { $0 } }
  }

  @Test func theDirectoryIsWatchedOnceForAllStreams() async throws {
    let backend = backend()
    var streams = [backend.changes(), backend.changes()]
    #expect(fileSystem.watches == 1)
    #expect(streams.count == 2)
    streams = []
    try await eventually("the watch was not released") { fileSystem.releases == 1 }
    streams = [backend.changes()]
    #expect(fileSystem.watches == 2)
    #expect(fileSystem.releases == 1)
  }

  @Test func aWatchIsReplacedOnlyIfItsDirectoryIsGone() async throws {
    let backend = backend()
    try backend.unlock()
    let stream = backend.changes()
    fileSystem.send()
    try await eventually("there was no look") { fileSystem.looks > 0 }
    #expect(fileSystem.watches == 1)
    fileSystem.endWatches()
    fileSystem.send()
    try await eventually("the watch was not replaced") { fileSystem.watches > 1 }
    try await eventually("the watch was not released") { fileSystem.releases > 0 }
    withExtendedLifetime(stream) {}
  }

  @Test func eventsDuringALookAreNeitherLostNorLookedAtOneByOne() async throws {
    let backend = backend()
    try backend.unlock()
    let stream = backend.changes()
    let end = fileSystem.holdNextLook()
    fileSystem.send()
    try await eventually("there was no look") { fileSystem.looks > 0 }
    for _ in 0..<100 { fileSystem.send() }
    end.signal()
    try await eventually("there was no further look") { fileSystem.looks > 1 }
    try await Task.sleep(for: .milliseconds(300))
    #expect(fileSystem.looks < 50)
    withExtendedLifetime(stream) {}
  }

  @Test func aLookReportsWhatAnotherProgramHasChanged() async throws {
    let backend = backend()
    try backend.unlock()
    let reported = Reported(backend.changes())
    try vault.open().set("a", [1])
    fileSystem.send()
    try await eventually("the change was not reported") {
      reported.all == [SecretChange(try identifier("a"))]
    }
    try await Task.sleep(for: .milliseconds(100))
    #expect(reported.all.count == 1)
  }

  /// The look finds one commit slot half written and the other one as it was, so it reads again under a lock.
  @Test func aChangeThatIsReadUnderALockIsReported() async throws {
    try vault.open().set("a", [0])
    let backend = backend()
    #expect(try backend.get("a") == [0])
    let reported = Reported(backend.changes())
    let start = try VaultFile(LocalMedium(path: vault.path, environment: VaultEnvironment()).open()).headerLength
    func slots() throws -> [UInt8] { Array(try vault.bytes[start..<start + 2 * Layout.pageSize]) }
    let before = try slots()
    try vault.open().set("a", [1])
    let after = try slots()
    let half = after[..<100] + before[100...]
    let file = open(vault.path, O_RDWR | O_CLOEXEC)
    defer { close(file) }
    func write(_ slots: [UInt8]) { #expect(pwrite(file, slots, slots.count, start) == slots.count) }
    #expect(flock(file, LOCK_EX) == 0)
    write(Array(half))
    let looks = fileSystem.looks
    fileSystem.send()
    try await eventually("there was no look") { fileSystem.looks > looks }
    try await Task.sleep(for: .milliseconds(200))
    write(after)
    #expect(flock(file, LOCK_UN) == 0)
    try await eventually("the change was not reported") { !reported.all.isEmpty }
    #expect(try backend.get("a") == [1])
  }

  @Test func anOlderStateThatAPersonTrustsIsReported() async throws {
    try vault.open().set("a", [0])
    let older = try vault.bytes
    try vault.open().set("a", [1])
    let backend = backend()
    #expect(try backend.get("a") == [1])
    let reported = Reported(backend.changes())
    try Data(older).write(to: URL(filePath: vault.path))
    try backend.trust()
    try await eventually("the change was not reported") { reported.all == [SecretChange(nil)] }
    #expect(try backend.get("a") == [0])
  }

  @Test func aChangeOfThisProgramIsReportedOnce() async throws {
    let backend = backend()
    let reported = Reported(backend.changes())
    try backend.set("a", [1])
    let expected = [SecretChange(try identifier("a"))]
    try await eventually("the change was not reported") { reported.all == expected }
    fileSystem.send()
    try await eventually("there was no look") { fileSystem.looks > 0 }
    _ = try backend.get("a")
    try await Task.sleep(for: .milliseconds(100))
    #expect(reported.all == expected)
  }

  @Test func periodsReportNothingOfAVaultThatIsNotOpen() async throws {
    let backend = backend(period: .milliseconds(10))
    let reported = Reported(backend.changes())
    try await Task.sleep(for: .milliseconds(200))
    #expect(reported.all == [])
    fileSystem.send()
    try await eventually("the change was not reported") { reported.all == [SecretChange(nil)] }
  }

  @Test func withoutWatchesTheFileIsLookedAtPeriodically() async throws {
    fileSystem.refuseWatches()
    let backend = backend(period: .milliseconds(10))
    try backend.unlock()
    let reported = Reported(backend.changes())
    try vault.open().set("a", [1])
    try await eventually("the change was not reported") {
      reported.all == [SecretChange(try identifier("a"))]
    }
  }

  /// A look does not open the vault, so it reports that everything may have changed.
  @Test func aLookAsksForNoCredential() async throws {
    let asked = Count()
    let backend = backend([FixedCredential.counted(asked)])
    let reported = Reported(backend.changes())
    fileSystem.send()
    try await eventually("the change was not reported") { reported.all == [SecretChange(nil)] }
    #expect(asked.value == 0)
  }

  @Test func aLookAsksForNoCredentialAfterARekeyByAnotherProcess() async throws {
    let asked = Count()
    let backend = backend([FixedCredential.counted(asked)])
    try backend.set("a", [1])
    #expect(asked.value == 1)
    try vault.open().rekey()
    let reported = Reported(backend.changes())
    fileSystem.send()
    try await eventually("the change was not reported") { reported.all == [SecretChange(nil)] }
    #expect(asked.value == 1)
    #expect(try backend.get("a") == [1])
    #expect(asked.value == 2)
    try vault.open().rekey()
    try backend.close()
    #expect(asked.value == 2)
  }

  /// As on a network file system, where a change by another host causes no event.
  @Test func whatAPeriodicLookCannotReadIsReportedOnce() async throws {
    fileSystem.refuseWatches()
    let backend = backend(period: .milliseconds(10))
    try backend.set("a", [1])
    let reported = Reported(backend.changes())
    // Before the second round a look has succeeded.
    for _ in 1...2 {
      let count = reported.all.count
      try vault.open().rekey()
      try await eventually("the change was not reported") { reported.all.count > count }
      try await Task.sleep(for: .milliseconds(100))
      #expect(reported.all.count == count + 1)
      #expect(try backend.get("a") == [1])
      try vault.open().set("a", [1])
      // The end of the failure is reported too, before or after this change.
      try await eventually("the vault is not looked at again") {
        try reported.all.dropFirst(count + 1).contains(SecretChange(identifier("a")))
      }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  @Test func aVaultThatCanNoLongerBeReadMayHaveChanged() async throws {
    let backend = backend()
    try backend.unlock()
    let reported = Reported(backend.changes())
    #expect(unlink(vault.path) == 0)
    fileSystem.send()
    try await eventually("the change was not reported") { reported.all == [SecretChange(nil)] }
  }

  @Test func anEventDuringAPeriodicLookIsNotLost() async throws {
    let (asked, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let source = VaultCredentialSource("a slow key") { _ throws(SecretError) in
      asked.signal()
      end.wait()
      return nil
    }
    let backend = backend([source], period: .milliseconds(10))
    let reported = Reported(backend.changes())
    let isLocked = Count()
    detachThread {
      if thrown({ () throws(SecretError) in try backend.unlock() })?.code == .locked { isLocked.add() }
    }
    asked.wait()
    // The periodic look waits until the thread above is done, and later ones wait for it.
    try await Task.sleep(for: .milliseconds(200))
    fileSystem.send()
    end.signal()
    try await eventually("the change was not reported") { reported.all.contains(SecretChange(nil)) }
    try await eventually("the vault was not found locked") { isLocked.value == 1 }
  }
}

/// The real disk, with watches that report what a test sends, and a count of the looks at the vault's name.
final class WatchedFileSystem: FileSystem {
  private struct State {
    var onChange: (@Sendable () -> Void)?
    var generation = 0
    var refusesWatches = false
    var watches = 0
    var releases = 0
    var looks = 0
    var hold: DispatchSemaphore?
  }
  private let state = Mutex(State())

  var watches: Int { state.withLock { $0.watches } }
  var releases: Int { state.withLock { $0.releases } }
  var looks: Int { state.withLock { $0.looks } }

  /// Reports a change of the file.
  func send() { state.withLock { $0.onChange }?() }

  /// Acts as if the watched directory were removed.
  func endWatches() { state.withLock { $0.generation += 1 } }

  func refuseWatches() { state.withLock { $0.refusesWatches = true } }

  /// The next look waits for the result.
  func holdNextLook() -> DispatchSemaphore {
    let end = DispatchSemaphore(value: 0)
    state.withLock { $0.hold = end }
    return end
  }

  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
    return Location(
      directory: WatchedDirectory(directory: location.directory, fileSystem: self, name: location.name),
      name: location.name, path: location.path)
  }

  private struct WatchedDirectory: PassingDirectory {
    let directory: any Directory
    let fileSystem: WatchedFileSystem
    let name: String

    func status(of name: String) throws(FileSystemError) -> FileStatus {
      if name == self.name {
        let hold = fileSystem.state.withLock { state in
          defer { state.hold = nil }
          state.looks += 1
          return state.hold
        }
        hold?.wait()
      }
      return try directory.status(of: name)
    }

    func watch(
      _ name: String, _ onChange: @escaping @Sendable () -> Void
    ) throws(FileSystemError) -> any DirectoryWatch {
      let generation = fileSystem.state.withLock { state -> Int? in
        if state.refusesWatches { return nil }
        state.watches += 1
        state.onChange = onChange
        return state.generation
      }
      guard let generation else { throw FileSystemError(ENOSPC) }
      return Watch(fileSystem, generation)
    }
  }

  private final class Watch: DirectoryWatch {
    private let fileSystem: WatchedFileSystem
    private let generation: Int

    init(_ fileSystem: WatchedFileSystem, _ generation: Int) {
      (self.fileSystem, self.generation) = (fileSystem, generation)
    }

    deinit { fileSystem.state.withLock { $0.releases += 1 } }

    var isAlive: Bool { fileSystem.state.withLock { $0.generation == generation } }
  }
}
