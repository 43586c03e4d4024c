import CofferCore
import CofferRemote
import CofferSimulation
import CofferTestSupport
import CofferTesting
import CofferVault
import Foundation
import Synchronization
import Testing

/// A vault on an engine: the program `coffer-remote-test`, which keeps it in a file and fails as a test tells it.
@Suite struct RemoteTests {
  private let directory: TemporaryDirectory
  private let url: String
  private var object: String { directory.file("object") }
  private let options: VaultOptions
  private let clock = Clock()

  init() throws {
    directory = try TemporaryDirectory(inMemory: true)
    // The first two tests can use another engine.
    url =
      ProcessInfo.processInfo.environment["COFFER_ENGINE_URL"].map { "\($0)-\(UUID().uuidString)" }
      ?? "test://localhost\(directory.file("object"))"
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = directory.file("known")
    try FileManager.default.createDirectory(
      atPath: directory.file("known"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    self.options = options
  }

  private var environment: VaultEnvironment {
    var environment = VaultEnvironment()
    environment.now = { [clock] in Date().addingTimeInterval(Double(clock.seconds.load(ordering: .relaxed))) }
    environment.helperDirectories = [URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path()]
      .map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
    return environment
  }

  private func open(_ options: VaultOptions? = nil, _ change: (inout VaultEnvironment) -> Void = { _ in })
    -> VaultBackend
  {
    var environment = environment
    change(&environment)
    return VaultBackend(
      path: url, credentials: [.key], options: options ?? self.options, environment: environment)
  }

  private func create() throws {
    let (medium, environment) = environment.place(url, options)
    try VaultBackend.create(
      on: medium, credential: FixedCredential.key.credential, options: options, environment: environment)
  }

  private func fail(_ faults: String...) throws {
    try faults.joined(separator: "\n").write(toFile: object + ".faults", atomically: true, encoding: .utf8)
  }

  private func code(_ body: () throws -> Void) -> SecretError.Code? {
    do { try body() } catch { return (error as? SecretError)?.code }
    return nil
  }

  @Test func aNewVaultIsUsedWithoutARecordOfIt() throws {
    var options = options
    options.knownVaultsDirectory = nil
    let (medium, environment) = environment.place(url, options)
    let new = try VaultBackend.create(
      on: medium, credential: FixedCredential.key.credential, options: options, environment: environment)
    #expect(!new.isRecorded && code { try open(options).unlock() } == .untrusted)
    options.pins = [new.pin]
    try open(options).unlock()
  }

  // MARK: The same as a file

  @Test func theVaultPassesTheConformanceSuiteOnAnEngine() async throws {
    try create()
    var suite = SecretBackendConformance.Options()
    // The object has at most 8 MiB, whatever is in it.
    (suite.maximumSecretSize, suite.largestTriedSize) = (nil, 1 << 20)
    (suite.threadCount, suite.roundCount) = (4, 5)
    suite.setHistoryVersions = {
      try ($0 as? VaultBackend)?.setHistoryLimit(#require(HistoryLimit(versions: $1, days: 90)))
    }
    let report = try await SecretBackendConformance(options: suite) { open() }.run()
    #expect(report.skipped.isEmpty)
    #expect(try open().verify().secretCount == 0)
  }

  /// Two writers and a reader take turns on the engine. A file gets the same changes.
  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func theEngineAndAFileHaveTheSameSecrets(_ seed: UInt64) throws {
    try create()
    var random = SeededRandom(seed: seed)
    let file = try TestVault()
    let (local, remotes) = (file.open(), (0..<3).map { _ in open() })
    let steps = ProcessInfo.processInfo.environment["COFFER_ENGINE_STEPS"].flatMap { Int($0) } ?? 150
    for step in 0..<steps {
      let name = try identifier("\(Int.random(in: 0..<8, using: &random))")
      let value = SecretBytes(
        [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: Int.random(in: 0..<3000, using: &random)))
      let writer = remotes[Int.random(in: 0..<2, using: &random)]
      let kind = Int.random(in: 0..<10, using: &random)
      for vault in [local, writer] {
        switch kind {
        case 0...5: try vault.store(value, for: name)
        case 6: try vault.remove(name)
        case 7: try vault.erase(name)
        case 8: try vault.restore(name)
        default: try vault.compact()
        }
      }
      for reader in [remotes[step % 3]] + (step % 25 == 0 ? [open()] : []) {
        let (found, expected) = (try reader.secrets(), try local.secrets())
        #expect(found.map(\.identifier) == expected.map(\.identifier), "step \(step), \(kind)")
        #expect(found.map { $0.value.array() } == expected.map { $0.value.array() }, "step \(step), \(kind)")
      }
    }
    #expect(try remotes[0].verify().secretCount == local.items().count)
  }

  // MARK: Outcomes

  /// Each of these goes wrong with one request, and the change is made once.
  @Test(arguments: [
    "lost", "dropped", "twice", "unknown", "unknown-made", "late", "nonsense", "endless", "huge", "again",
  ])
  func aChangeIsMadeOnceWhateverHappensToItsRequest(_ fault: String) throws {
    try create()
    let vault = open()
    try vault.set("count", [0])
    for round in 1...3 as ClosedRange<UInt8> {
      try fail(fault)
      let former = try vault.withTransaction { transaction throws(SecretError) in
        let old = try transaction.lookUp(identifier("count"))?.array()[0] ?? 0
        try transaction.store(SecretBytes([old + 1]), for: identifier("count"))
        return old
      }
      #expect(former == round - 1)
      #expect(try open().get("count") == [round])
      // Nothing is left for the next one.
      try open().set("other", [round])
      #expect(try vault.get("count") == [round])
      try fail(fault)
      try vault.rekey()
      try fail(fault)
      try vault.compact()
      #expect(try open().get("count") == [round] && vault.get("other") == [round])
    }
  }

  @Test(arguments: ["dropped", "twice", "unknown-made", "late"])
  func aNewVaultIsTheOneWhoseRequestWasInDoubt(_ fault: String) throws {
    try fail(fault)
    try create()
    #expect(try open().items().isEmpty)
    #expect(code { try create() } == .alreadyExists)
  }

  @Test func anOutcomeThatStaysUnknownIsSaid() throws {
    try create()
    let vault = open {
      $0.uptime = Self.fastClock(); $0.sleep = { _ in }
    }
    try vault.set("a", [1])
    for fault in ["unknown", "lost"] {
      try (fail)([String](repeating: fault, count: 60).joined(separator: "\n"))
      let error = #expect(throws: SecretError.self) { try vault.set("a", [2]) }
      #expect(error?.code == .outcomeUnknown && error?.effect == .unknown)
      try fail("")
      #expect(try open().get("a") == [1])
    }
  }

  /// A clock that a second passes on at each look.
  private static func fastClock() -> @Sendable () -> Duration {
    let count = Count()
    return {
      count.add()
      return .seconds(count.value)
    }
  }

  @Test func aChangeThatIsThereAndNotSafeIsInDoubt() throws {
    try create()
    let vault = open()
    try vault.set("a", [1])
    try fail("unknown-made", "none", "confirm", "confirm", "confirm")
    #expect(code { try vault.set("a", [2]) } == .outcomeUnknown)
    try fail("")
    #expect(try open().get("a") == [2])
  }

  /// What was sent first may have been made, whatever happens to the same request later.
  @Test(arguments: ["unknown", "unknown-made", "late"])
  func aFailureDoesNotEndADoubt(_ doubt: String) throws {
    try create()
    let vault = open()
    try vault.set("a", [1])
    try fail(doubt, "full")
    try vault.set("a", [2])
    #expect(try open().get("a") == [2] && vault.versions(of: identifier("a")).count == 2)
  }

  @Test func aChangeThatTheEngineCannotMakeChangesNothing() throws {
    try create()
    let vault = open()
    try vault.set("a", [1])
    try fail("full")
    #expect(code { try vault.set("a", [2]) } == .io)
    #expect(try vault.get("a") == [1] && open().get("a") == [1])
    try vault.set("a", [3])
    #expect(try open().get("a") == [3])
  }

  @Test func anEngineThatIsAwayIsUnreachable() throws {
    try create()
    let vault = open()
    try vault.set("a", [1])
    // A reader asks once, and not again after a failure.
    try fail("read")
    let error = #expect(throws: SecretError.self) { try vault.get("a") }
    #expect(error?.code == .unavailable && error?.advice == "Wait for it.")
    #expect(try vault.get("a") == [1])
  }

  // MARK: Leases

  /// The seconds that have passed for the engine and for the machines since the test began.
  private final class Clock: Sendable {
    let seconds = Atomic(0)
  }

  /// Sets the engine's clock ahead, and by default those of the machines.
  private func advance(seconds: Int, ofMachines machines: Int? = nil) throws {
    try "\(seconds)".write(toFile: object + ".clock", atomically: true, encoding: .utf8)
    clock.seconds.store(machines ?? seconds, ordering: .relaxed)
  }

  /// The object and the versions that the engine knows of it.
  private func saved() throws -> [(path: String, bytes: Data)] {
    try [object, object + ".log"].map { ($0, try Data(contentsOf: URL(filePath: $0))) }
  }

  private func restore(_ files: [(path: String, bytes: Data)]) throws {
    for (path, bytes) in files { try bytes.write(to: URL(filePath: path)) }
  }

  /// The options of another machine, which has seen nothing and knows `pin`.
  private func options(recordsIn name: String, pin: String) throws -> VaultOptions {
    try FileManager.default.createDirectory(
      atPath: directory.file(name), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    var options = options
    (options.knownVaultsDirectory, options.pins) = (directory.file(name), [pin])
    return options
  }

  private let page = 12_288..<16_384

  /// Writes `bytes` over the page of leases, as a new version of the object.
  private func exchangePage(_ bytes: Data) throws {
    var whole = try Data(contentsOf: URL(filePath: object))
    whole.replaceSubrange(page, with: bytes)
    try whole.write(to: URL(filePath: object))
    let log = try String(contentsOfFile: object + ".log", encoding: .utf8)
    let line = "\(UUID().uuidString) \(whole.count) \(page.lowerBound) \(page.count)\n"
    try (log + line).write(toFile: object + ".log", atomically: true, encoding: .utf8)
  }

  @Test func oneOfManyHasALease() throws {
    try create()
    let (name, vaults) = (try identifier("token"), (0..<3).map { _ in open() })
    let lease = try #require(try vaults[0].tryLease(name))
    for vault in vaults { #expect(try vault.tryLease(name) == nil) }
    #expect(try vaults[1].tryLease(identifier("other")) != nil)
    lease.release()
    #expect(try vaults[2].tryLease(name) != nil)
  }

  @Test func oneOfManyAtOnceHasALease() throws {
    try create()
    let (name, vaults) = (try identifier("token"), (0..<6).map { _ in open() })
    for round in 0..<5 as Range<UInt8> {
      // Each has made a change, which says nothing of its lease.
      for vault in vaults { try vault.set("round", [round]) }
      let taken = Mutex<[SecretLease]>([])
      DispatchQueue.concurrentPerform(iterations: vaults.count) { index in
        do {
          if let lease = try vaults[index].tryLease(name) { taken.withLock { $0.append(lease) } }
        } catch { Issue.record(error) }
      }
      #expect(taken.withLock { $0.count } == 1)
      for lease in taken.withLock({ $0 }) { lease.release() }
    }
  }

  @Test func aLateHolderChangesNothing() throws {
    try create()
    let (name, first, second) = (try identifier("token"), open(), open())
    try first.set("token", [0])
    let late = try #require(try first.tryLease(name))
    try first.set("token", [1])
    try advance(seconds: 14)
    #expect(try second.tryLease(name) == nil)
    try advance(seconds: 16)
    let lease = try #require(try second.tryLease(name))
    #expect(code { try first.set("token", [2]) } == .conflict)
    #expect(code { _ = try first.remove(name) } == .conflict)
    try first.set("other", [2])
    try second.set("token", [3])
    // The late holder does not end the lease of the other, and then is nobody special.
    late.release()
    #expect(try open().tryLease(name) == nil)
    #expect(try open().get("token") == [3] && first.get("other") == [2])
    lease.release()
    try first.set("token", [4])
    #expect(try open().get("token") == [4])
  }

  /// The lease is taken between the check of the late holder and its change.
  @Test func aLeaseThatIsTakenDuringAChangeRefusesIt() throws {
    try create()
    let (name, first, second) = (try identifier("token"), open(), open())
    try first.set("token", [1])
    let late = try first.tryLease(name)
    let taken = Mutex<SecretLease?>(nil)
    #expect(
      code {
        try first.withTransaction { transaction throws(SecretError) in
          try transaction.store(SecretBytes([2]), for: name)
          guard taken.withLock({ $0 == nil }) else { return }
          do { try advance(seconds: 16) } catch { Issue.record(error) }
          let lease = try second.tryLease(name)
          taken.withLock { $0 = lease }
        }
      } == .conflict)
    #expect(try taken.withLock { $0 } != nil && open().get("token") == [1])
    withExtendedLifetime(late) {}
  }

  @Test func aLeaseIsProlongedAndChangesNoState() async throws {
    try create()
    let (name, vault) = (try identifier("token"), open())
    try vault.set("token", [1])
    let reader = open()
    let pin = try reader.pin()
    let lease = try #require(try vault.tryLease(name))
    let (taken, start) = (try saved()[0].bytes[page], ContinuousClock.now)
    try await eventually("the lease is not prolonged") { try saved()[0].bytes[page] != taken }
    // Later than the first end, and not later than the end of the prolonged lease.
    try advance(seconds: max(0, 16 - Int((ContinuousClock.now - start) / .seconds(1))))
    #expect(try reader.tryLease(name) == nil && vault.pin() == pin && reader.pin() == pin)
    try vault.set("token", [2])
    lease.release()
    #expect(try reader.tryLease(name) != nil && reader.get("token") == [2])
  }

  /// More changes of the page than a vault lists changes.
  @Test func manyLeasesHideNoForkAndHinderNoMerge() throws {
    try create()
    let (name, vault) = (try identifier("token"), open())
    try vault.set("token", [1])
    let (fork, first) = (try saved(), try vault.pin())
    let size = fork[0].bytes.count
    try vault.set("token", [2])
    let reader = try open(options(recordsIn: "reader", pin: vault.pin()))
    #expect(try reader.get("token") == [2])
    func takeMany(_ vault: VaultBackend) throws {
      for _ in 0..<520 { try #require(try vault.tryLease(name)).release() }
      try vault.set("last", [1])
      try vault.compact()
    }
    try takeMany(vault)
    #expect(try saved()[0].bytes.count < size + 1000)
    #expect(try reader.get("token") == [2])
    // A copy from before them is merged.
    let report = try vault.merge(with: VaultCopy(Array(fork[0].bytes), named: "copy"))
    #expect(report.outcome == .unchanged)
    // Another history of the same vault, which is longer.
    try restore(fork)
    let other = try open(options(recordsIn: "other", pin: first))
    for round in 0..<9 as Range<UInt8> { try other.set("token", [round]) }
    try takeMany(other)
    #expect(code { _ = try reader.get("token") } == .rolledBack)
  }

  @Test func aLeaseOutlivesWhatOthersWrite() throws {
    try create()
    let (name, first, second) = (try identifier("token"), open(), open())
    try first.set("token", [0])
    let lease = try #require(try first.tryLease(name))
    var value: UInt8 = 0
    for change in [
      { try second.set("other", [1]) }, { try second.compact() }, { try second.rekey() },
      { _ = try second.erase(identifier("other")) },
      {
        // A later copy takes the vault's place, which has a lease by then that the copy does not have.
        let copy = directory.file("copy")
        try saved()[0].bytes.write(to: URL(filePath: copy))
        chmod(copy, 0o600)
        let file = VaultBackend(path: copy, credentials: [.key], options: .cheap)
        try file.set("copy", [1])
        let later = try #require(try second.tryLease(identifier("later")))
        #expect(try second.merge(with: VaultCopy(at: copy)).outcome == .replaced)
        #expect(try open().tryLease(identifier("later")) == nil)
        later.release()
      },
      {
        // Both have changes.
        let copy = directory.file("copy")
        try VaultBackend(path: copy, credentials: [.key], options: .cheap).set("copy", [2])
        try second.set("other", [2])
        #expect(try second.merge(with: VaultCopy(at: copy)).outcome == .merged)
      },
    ] as [() throws -> Void] {
      try change()
      value += 1
      #expect(try second.tryLease(name) == nil && open().tryLease(name) == nil)
      #expect(code { try first.set("token", [value]) } == nil)
      #expect(try second.get("token") == [value] && second.verify().unacknowledgedBytes == 0)
    }
    lease.release()
    #expect(try second.tryLease(name) != nil)
  }

  /// The engine shows an older page, in which the lease is still there.
  @Test func aPageThatGoesBackLosesTheLeases() throws {
    try create()
    let (name, first, second) = (try identifier("token"), open(), open())
    try first.set("token", [0])
    let lease = try first.tryLease(name)
    let older = try saved()[0].bytes[page]
    let other = try second.tryLease(identifier("other"))
    try first.set("token", [1])
    try exchangePage(older)
    #expect(code { try first.set("token", [2]) } == .conflict)
    #expect(try second.get("token") == [1])
    lease?.release()
    let again = try #require(try first.tryLease(name))
    try first.set("token", [3])
    again.release()
    withExtendedLifetime(other) {}
  }

  @Test func aPageThatIsNotAuthenticGivesNoLease() throws {
    try create()
    let (name, vault) = (try identifier("token"), open())
    try vault.set("token", [0])
    let lease = try vault.tryLease(name)
    let whole = try saved()[0].bytes[page]
    for offset in [0, 2000, 4095] {
      var damaged = Array(whole)
      damaged[offset] ^= 1
      try exchangePage(Data(damaged))
      #expect(code { _ = try open().tryLease(identifier("other")) } == .tampered)
      #expect(code { _ = try open().verify() } == .tampered)
      #expect(code { try vault.set("token", [1]) } == .tampered)
      #expect(try open().get("token") == [0])
      try open().set("other", [1])
    }
    withExtendedLifetime(lease) {}
  }

  @Test(arguments: ["lost", "dropped", "refused", "twice", "unknown", "unknown-made", "late", "nonsense", "again"])
  func aLeaseIsTakenAndGivenBackWhateverHappensToItsRequest(_ fault: String) throws {
    try create()
    let (name, vault) = (try identifier("token"), open())
    for round in 1...3 as ClosedRange<UInt8> {
      try vault.set("token", [round])
      try fail(fault)
      let lease = try #require(try vault.tryLease(name))
      #expect(try open().tryLease(name) == nil)
      try vault.set("token", [round + 1])
      try fail(fault)
      lease.release()
      try #require(try open().tryLease(name)).release()
    }
  }

  @Test func aHundredSecretsHaveLeases() throws {
    try create()
    let vault = open()
    let leases = try (0..<100).map { try #require(try vault.tryLease(identifier("\($0)"))) }
    #expect(try vault.tryLease(identifier("one more")) == nil)
    leases[7].release()
    let last = try #require(try vault.tryLease(identifier("one more")))
    #expect(try vault.tryLease(identifier("7")) == nil && open().verify().secretCount == 0)
    // What has ended makes room.
    try advance(seconds: 16)
    #expect(try open().tryLease(identifier("7")) != nil)
    for lease in leases + [last] { lease.release() }
  }

  @Test func aLeaseOfAWrongClockDoesNotLast() throws {
    try create()
    let name = try identifier("token")
    try advance(seconds: 365 * 86_400)
    let lease = try open().tryLease(name)
    try advance(seconds: 0)
    #expect(try lease != nil && open().tryLease(name) != nil)
    withExtendedLifetime(lease) {}
  }

  @Test(arguments: [(20, "20 seconds ahead of"), (6, "6 seconds ahead of"), (-7, "7 seconds behind")])
  func aClockThatIsWrongGivesNoLease(_ seconds: Int, _ difference: String) throws {
    try create()
    let (name, first, second) = (try identifier("token"), open(), open())
    try first.set("token", [1])
    let lease = try #require(try first.tryLease(name))
    // Another gateway answers the other machine.
    try advance(seconds: seconds, ofMachines: 0)
    let error = #expect(throws: SecretError.self) { try second.tryLease(name) }
    #expect(error?.code == .configuration && error?.reason.contains(difference) == true, "\(error as Any)")
    #expect(error?.advice?.contains("clock") == true)
    // Everything else works, also to give a lease back.
    try first.set("token", [2])
    lease.release()
    try advance(seconds: seconds < 0 ? -4 : 4, ofMachines: 0)
    #expect(try second.tryLease(name) != nil)
  }

  /// The engine reads its clock while a slow request is under way.
  @Test func aSlowAnswerIsNoWrongClock() throws {
    try create()
    let faults = object + ".faults"
    func take() throws -> SecretLease? {
      // The engine takes the line away when it answers. That takes 12 seconds by the machine's clock.
      try fail("tick")
      return try open {
        $0.now = {
          let isAnswered = (try? String(contentsOfFile: faults, encoding: .utf8))?.isEmpty ?? true
          return Date().addingTimeInterval(isAnswered ? 12 : 0)
        }
      }.tryLease(identifier("token"))
    }
    for seconds in [-6, 18] {
      try advance(seconds: seconds)
      #expect(code { _ = try take() } == .configuration)
    }
    for seconds in [-4, 6, 16] {
      try advance(seconds: seconds)
      #expect(try take() != nil)
    }
  }

  @Test func aLeaseIsSeenByNobody() async throws {
    try create()
    let (name, vault) = (try identifier("token"), open())
    try vault.set("token", [1])
    let pin = try vault.pin()
    let watcher = open { $0.watchPeriod = .milliseconds(20) }
    #expect(try watcher.get("token") == [1])
    var changes = watcher.changes().makeAsyncIterator()
    try vault.tryLease(name)?.release()
    let lease = try vault.tryLease(name)
    try await Task.sleep(for: .milliseconds(300))
    #expect(try watcher.pin() == pin && vault.pin() == pin && open().pin() == pin)
    try vault.set("last", [1])
    let change = await changes.next()
    #expect(try change?.identifier == identifier("last"))
    for shown in [vault, open()] {
      #expect(try shown.items().count == 2 && shown.secrets().count == 2 && shown.verify().secretCount == 2)
    }
    #expect(try open().tryLease(name) == nil)
    lease?.release()
    #expect(try open().removedItems(inService: nil).isEmpty)
  }

  // MARK: The copy on this machine

  private func withCopies(_ change: (inout VaultOptions) -> Void = { _ in }) throws -> VaultOptions {
    var options = options
    options.copiesDirectory = directory.file("copies")
    try FileManager.default.createDirectory(
      atPath: directory.file("copies"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    change(&options)
    return options
  }

  @Test func aCopyAnswersWithoutTheEngine() throws {
    try create()
    let offline = try withCopies { $0.isOffline = true }
    #expect(code { _ = try open(offline).items() } == .unavailable)
    try open(withCopies()).set("a", [1])
    #expect(try open(offline).get("a") == [1])
    #expect(code { try open(offline).set("a", [2]) } == .unavailable)
    // Also after a change that writes the file anew.
    for change in [{ try $0.rekey() }, { try $0.compact() }, { _ = try $0.erase(identifier("b")) }]
      as [(VaultBackend) throws -> Void]
    {
      try open(withCopies()).set("b", [1])
      try change(open(withCopies()))
      #expect(try open(offline).get("a") == [1])
      let aged = try withCopies { $0.maximumAge = .seconds(3600) }
      #expect(try open(aged).get("a") == [1])
    }
    try open().set("a", [2])
    // The record of this machine is newer than the copy.
    let error = #expect(throws: SecretError.self) { try open(offline).get("a") }
    #expect(error?.code == .rolledBack && error?.reason.contains("copy") == true && error?.remedy == nil)
    #expect(try open(withCopies()).get("a") == [2] && open(offline).get("a") == [2])
  }

  /// Also not before a state is recorded that no record has yet.
  @Test func theEngineIsNotAskedOffline() throws {
    try create()
    let vault = try open(withCopies())
    try vault.set("a", [1])
    var offline = try withCopies { $0.isOffline = true }
    offline.knownVaultsDirectory = directory.file("elsewhere")
    try FileManager.default.createDirectory(
      atPath: directory.file("elsewhere"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    offline.pins = [try vault.pin()]
    try fail("confirm")
    let reader = open(offline)
    #expect(try reader.get("a") == [1])
    #expect(try reader.lastNotices()?.contains(.unrecorded) == false)
    #expect(try String(contentsOfFile: object + ".faults", encoding: .utf8) == "confirm")
    #expect(code { _ = try reader.engine() } == .unavailable)
  }

  @Test func aFileIsCheckedAndRecordedOffline() throws {
    let file = try TestVault()
    let vault = file.open()
    try vault.set("a", [1])
    let older = try file.bytes
    try vault.set("a", [2])
    var offline = options
    offline.isOffline = true
    func reader() -> VaultBackend { VaultBackend(path: file.path, credentials: [.key], options: offline) }
    #expect(try reader().get("a") == [2])
    try Data(older).write(to: URL(filePath: file.path))
    let error = #expect(throws: SecretError.self) { try reader().get("a") }
    #expect(error?.code == .rolledBack && error?.remedy != nil)
  }

  @Test func aStateOfAllowedAgeIsUsedWithoutAQuestion() throws {
    try create()
    let aged = try withCopies { $0.maximumAge = .seconds(3600) }
    let vault = open(aged)
    try vault.set("a", [1])
    try fail("read", "read", "read")
    #expect(try vault.get("a") == [1] && open(aged).get("a") == [1])
    try fail("")
    // A record that is newer than the copy shows that there is something newer.
    try open().set("a", [7])
    #expect(try open(aged).get("a") == [7])
    // A change is made to the newest state, and then nothing older is used.
    try open().set("count", [5])
    let former = try vault.withTransaction { transaction throws(SecretError) in
      let old = try transaction.lookUp(identifier("count"))?.array()[0] ?? 0
      try transaction.store(SecretBytes([old + 1]), for: identifier("count"))
      return old
    }
    #expect(try former == 5 && vault.get("count") == [6])
  }

  /// A change by another machine is in no record of this one: only the refusal shows it.
  @Test func aChangeOfAnAgedStateIsMadeToTheNewest() throws {
    try create()
    let vault = try open(withCopies { $0.maximumAge = .seconds(3600) })
    try vault.set("count", [1])
    var elsewhere = options
    (elsewhere.knownVaultsDirectory, elsewhere.pins) = (nil, [try open().pin()])
    try open(elsewhere).set("count", [5])
    #expect(try vault.get("count") == [1])
    try vault.withTransaction { transaction throws(SecretError) in
      let old = try transaction.lookUp(identifier("count"))?.array()[0] ?? 0
      try transaction.store(SecretBytes([old + 1]), for: identifier("count"))
    }
    #expect(try open(elsewhere).get("count") == [6])
  }

  @Test func aDamagedCopyIsNotUsed() throws {
    try create()
    try open(withCopies()).set("a", [1])
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.file("copies"))
    for name in names {
      let path = directory.file("copies") + "/" + name
      let whole = try Data(contentsOf: URL(filePath: path))
      if name.hasSuffix(".version") {
        // A vault alone is enough without the engine.
        try FileManager.default.removeItem(atPath: path)
        #expect(try open(withCopies { $0.isOffline = true }).get("a") == [1])
      }
      for bad in [Data(), whole.dropLast(), whole + [0], Data(whole.reversed())] {
        try bad.write(to: URL(filePath: path))
        #expect(try open(withCopies()).get("a") == [1])
        try open(withCopies()).set("b", [1])
      }
    }
    #expect(names.count == 2)
  }

  // MARK: What an engine must not do

  @Test func anOlderStateIsRefused() throws {
    try create()
    let vault = open()
    try vault.set("a", [1])
    let (bytes, log) = (
      try Data(contentsOf: URL(filePath: object)), try Data(contentsOf: URL(filePath: object + ".log"))
    )
    try vault.set("a", [2])
    try bytes.write(to: URL(filePath: object))
    try log.write(to: URL(filePath: object + ".log"))
    for reader in [vault, open()] { #expect(code { _ = try reader.get("a") } == .rolledBack) }
  }

  /// Whoever runs the engine lets every confirmation fail, so that nothing would be recorded.
  @Test(arguments: [false, true]) func aStateThatTheEngineDoesNotConfirmIsRecorded(isChange: Bool) throws {
    try create()
    try open().set("a", [1])
    let files = try ["", ".log"].map { (object + $0, try Data(contentsOf: URL(filePath: object + $0))) }
    var elsewhere = options
    (elsewhere.knownVaultsDirectory, elsewhere.pins) = (nil, [try open().pin()])
    try open(elsewhere).set("a", [2])
    try fail("confirm", "confirm", "confirm", "confirm")
    let reader = open()
    #expect(try reader.get("a") == [2])
    #expect(try reader.lastNotices()?.contains(.unrecorded) == false)
    // What a change was decided on has been shown too.
    if isChange {
      #expect(code { _ = try reader.withTransaction { _ = try? $0.lookUp(identifier("a")) } } != nil)
    }
    for (path, bytes) in files { try bytes.write(to: URL(filePath: path)) }
    for vault in [reader, open()] { #expect(code { _ = try vault.get("a") } == .rolledBack) }
  }

  @Test func anotherOrACutObjectIsRefused() throws {
    try create()
    try open().set("a", [1])
    let whole = try Data(contentsOf: URL(filePath: object))
    for (bytes, expected) in [
      (whole.prefix(whole.count - 1), SecretError.Code.tampered), (whole.prefix(3), .notAVault),
      (try Data(TestVault().bytes), .unexpectedVault), (Data(count: 9 << 20), .unavailable),
    ] {
      try bytes.write(to: URL(filePath: object))
      #expect(code { _ = try open().get("a") } == expected)
    }
    try whole.write(to: URL(filePath: object))
    #expect(try open().get("a") == [1])
  }

  @Test func theFirstUseOnAMachineNeedsAPinOrADecision() throws {
    try create()
    let pin = try open().pin()
    var elsewhere = options
    elsewhere.knownVaultsDirectory = directory.file("elsewhere")
    try FileManager.default.createDirectory(
      atPath: directory.file("elsewhere"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    #expect(code { _ = try open(elsewhere).items() } == .untrusted)
    var withoutRecords = options
    withoutRecords.knownVaultsDirectory = nil
    #expect(code { _ = try open(withoutRecords).items() } == .untrusted)
    var pinned = elsewhere
    pinned.pins = [pin]
    #expect(try open(pinned).items().isEmpty)
    #expect(try open(elsewhere).items().isEmpty)
    withoutRecords.pins = ["TEST://LOCALHOST\(object)=\(pin)"]
    #expect(try open(withoutRecords).items().isEmpty)
  }

  @Test func aVaultThatIsTooLargeForAnEngineIsNotChanged() throws {
    try create()
    let vault = open()
    try vault.set("a", [UInt8](repeating: 1, count: 5 << 20))
    let error = #expect(throws: SecretError.self) { try vault.set("b", [UInt8](repeating: 2, count: 5 << 20)) }
    #expect(error?.code == .tooLarge && error?.reason.contains("8388608") == true)
    #expect(try open().items().count == 1)
  }

  // MARK: The helper

  @Test func aVaultThatIsReleasedEndsItsHelper() throws {
    try create()
    weak var released: RemoteMedium?
    func use() throws {
      let (medium, environment) = environment.place(url, options)
      released = medium as? RemoteMedium
      let vault = VaultBackend(medium, credentials: [.key], options: options, environment: environment)
      try vault.set("a", [1])
      try vault.rekey()
      try vault.tryLease(identifier("a"))?.release()
      #expect(try vault.get("a") == [1] && released != nil)
    }
    try use()
    #expect(released == nil)
  }

  @Test func aHelperThatOthersCanChangeIsNotStarted() throws {
    try create()
    let helpers = directory.file("helpers")
    try FileManager.default.createDirectory(atPath: helpers, withIntermediateDirectories: true)
    let path = helpers + "/coffer-remote-test"
    try FileManager.default.copyItem(
      atPath: environment.helperDirectories![0] + "/coffer-remote-test", toPath: path)
    func vault() -> VaultBackend { open { $0.helperDirectories = [helpers] } }
    #expect(try vault().items().isEmpty)
    for (changed, mode) in [(path, 0o775), (helpers, 0o777), (path, 0o757)] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: changed)
      #expect(code { _ = try vault().items() } == .denied)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: changed)
    }
    try FileManager.default.removeItem(atPath: path)
    #expect(code { _ = try vault().items() } == .unavailable)
    try FileManager.default.createSymbolicLink(
      atPath: path, withDestinationPath: environment.helperDirectories![0] + "/coffer-remote-test")
    #expect(code { _ = try vault().items() } == .denied)
  }

  @Test(arguments: [
    ("S3://Bucket/a.vault", "s3://bucket/a.vault"), ("s3+https://Host:443/b/k/l", "s3+https://host/b/k/l"),
    ("postgresql://A:5432,b:5433/Db/V", "postgresql://a,b:5433/Db/V"), ("test://[::1]:5/a", "test://[::1]:5/a"),
  ])
  func aURLHasOneForm(_ text: String, _ expected: String) throws {
    #expect(try RemoteURL(text).description == expected)
    #expect(try RemoteURL(expected).description == expected)
  }

  @Test(arguments: [
    "s3://", "s3://b", "s3://b/", "s3:///k", "s3://b/../k", "s3://b//k", "s3://b/k?x=1", "s3://b/k#x", "s3://b/a%20b",
    "postgresql://user@h/d/v", "postgresql://u:secret@h/d/v", "postgresql://h,/d/v", "+x://h/v", "s3://b/a b",
    "x://:5/v",
    "x://h/\u{e9}",
  ])
  func aURLWithMoreThanAPlaceIsRefused(_ text: String) {
    let error = #expect(throws: SecretError.self) { try RemoteURL(text) }
    #expect(error?.code == .invalidURL && error?.description.contains("secret") == false)
  }

  @Test func aMessageIsReadAsItWasWritten() throws {
    let messages: [RemoteMessage] = [
      RemoteRequest.read(known: nil, queueing: true).message, RemoteRequest.confirm.message,
      RemoteRequest.publish(over: "v", id: "i", isWhole: false, [.init(offset: 7, [1, 10, 0]), .init([])]).message,
      RemoteAnswer.whole(version: "\"x\"", [0, 10]).message(time: 3),
      RemoteAnswer.failed(RemoteFailure(.denied, "No.", advice: "Ask.")).message(time: 0),
    ]
    let pipe = Pipe()
    pipe.fileHandleForWriting.write(Data(messages.flatMap(\.serialized)))
    try pipe.fileHandleForWriting.close()
    var connection = RemoteConnection(input: pipe.fileHandleForReading.fileDescriptor, output: -1)
    for message in messages { #expect(try connection.receive() == message) }
    #expect(try connection.receive() == nil)
  }

  @Test(arguments: [
    "\n", " a\n", "a  b\n", "a @1\n", "a @1:\n", "a @1:2:3\n", "a @-1:2\n", "a @0:8388609\n", "a @0:1 b\n", "a\tb\n",
    "a",
    "a\u{e9}\n", String(repeating: "a", count: 1024) + "\n", "a @0:5\nbcd",
  ])
  func aMalformedMessageIsRefused(_ text: String) throws {
    let pipe = Pipe()
    pipe.fileHandleForWriting.write(Data(text.utf8))
    try pipe.fileHandleForWriting.close()
    var connection = RemoteConnection(input: pipe.fileHandleForReading.fileDescriptor, output: -1)
    #expect(throws: RemoteConnection.Failure.self) { try connection.receive() }
  }
}
