import CofferCore
import CofferRemote
import CofferSimulation
import CofferTestSupport
import CofferTesting
import CofferVault
import Foundation
import Testing

/// A vault on an engine: the program `coffer-remote-test`, which keeps it in a file and fails as a test tells it.
@Suite struct RemoteTests {
  private let directory: TemporaryDirectory
  private let url: String
  private var object: String { directory.file("object") }
  private let options: VaultOptions

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
      #expect(error?.code == .outcomeUnknown)
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

  /// Sets the engine's clock ahead.
  private func advance(seconds: Int) throws {
    try "\(seconds)".write(toFile: object + ".clock", atomically: true, encoding: .utf8)
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

  @Test func aLeaseOfAWrongClockDoesNotLast() throws {
    try create()
    let name = try identifier("token")
    try advance(seconds: 365 * 86_400)
    let lease = try open().tryLease(name)
    try advance(seconds: 0)
    #expect(try lease != nil && open().tryLease(name) != nil)
    withExtendedLifetime(lease) {}
  }

  @Test func aLeaseIsSeenByNobody() async throws {
    try create()
    let (name, vault) = (try identifier("token"), open())
    try vault.set("token", [1])
    let watcher = open { $0.watchPeriod = .milliseconds(20) }
    #expect(try watcher.get("token") == [1])
    var changes = watcher.changes().makeAsyncIterator()
    try vault.tryLease(name)?.release()
    let lease = try vault.tryLease(name)
    try await Task.sleep(for: .milliseconds(300))
    try vault.set("last", [1])
    let change = await changes.next()
    #expect(try change?.identifier == identifier("last"))
    #expect(try open().tryLease(name) == nil)
    for shown in [vault, open()] {
      #expect(try shown.items().count == 2 && shown.secrets().count == 2 && shown.verify().secretCount == 2)
      #expect(try shown.items(inService: SecretIdentifier.leases).isEmpty)
      try shown.compact()
    }
    #expect(try open().tryLease(name) == nil)
    lease?.release()
    #expect(try open().removedItems(inService: nil).isEmpty)
    #expect(code { _ = try SecretIdentifier(service: SecretIdentifier.leases, account: "a") } == .invalidIdentifier)
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
