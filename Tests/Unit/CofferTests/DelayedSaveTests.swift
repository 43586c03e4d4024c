import Coffer
import CofferCore
import CofferTestSupport
import CofferTesting
import Testing

private protocol CounterStorage: VaultStorable where Value == Int {}

extension CounterStorage {
  static var key: String { "value" }
  static var defaultValue: Int { 0 }
  static var storage: SecretScope { SecretScope(service: "tests") }
}

/// Nothing is stored before the test says so.
private struct Later: CounterStorage {
  static let saveDelay = Duration.seconds(3600)
}

private struct Soon: CounterStorage {
  static let saveDelay = Duration.milliseconds(1)
}

private struct Shortly: CounterStorage {
  static let saveDelay = Duration.milliseconds(300)
}

private struct Converted: VaultStorable {
  static let key = "value"
  static let defaultValue = [0]
  static let storage = SecretScope(service: "tests")
  static let saveDelay = Duration.seconds(3600)

  static func configure(builder: DataMigrator<[Int]>.Builder) {
    builder.register(from: Int.self, to: [Int].self) { [$0] }
  }
}

/// Changes that are stored later. The suite is serialized, because `DelayedSaves` is about all values of the process.
@Suite(.serialized, .timeLimit(.minutes(30))) struct DelayedSaveTests {
  let backend = ScriptedBackend()
  private var stores: Int { backend.edit { $0.metadata.count } }

  @Test func changesWithinTheDelayAreStoredAsOne() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(Later.self)
      for value in 1...5 { try counter.set(value) }
      try counter.update { $0 += 1 }
      #expect(counter.wrappedValue == 6)
      #expect(stores == 0)
      try counter.flush()
      try counter.flush()
      #expect(stores == 1)
      #expect(try backend.text("value") == "6")
      #expect(try backend.version("value") == "1")
      #expect(counter.wrappedValue == 6)
    }
  }

  @Test func aChangeIsStoredAfterTheDelay() async throws {
    try await DefaultBackend.with(backend) {
      let counter = VaultStored(Soon.self)
      for value in 1...3 {
        try await counter.set(value)
        try await eventually("the change was not stored") { try backend.text("value") == "\(value)" }
      }
    }
  }

  @Test func closingABackendStoresWhatWaitsForItAndNothingElse() throws {
    let other = ScriptedBackend()
    try DefaultBackend.with(backend) { try VaultStored(Later.self).set(7) }
    try DefaultBackend.with(other) { try VaultStored(Later.self).set(8) }
    try other.close()
    #expect(try other.text("value") == "8")
    #expect(stores == 0)
    // The value does not wait for this backend, but closing it closes its base, which stores the value.
    try ForwardingBackend(backend).close()
    #expect(try backend.text("value") == "7")
  }

  /// Each kind of backend stores what waits before it closes, also one that somebody derives.
  @Test func everyKindOfBackendStoresWhatWaitsWhenItIsClosed() throws {
    let directory = try TemporaryDirectory(inMemory: true)
    let vault = try VaultBackend.create(
      at: directory.file("v"), credential: .key(SecretBytes([UInt8](repeating: 7, count: 32))))
    for backend in [vault, ForwardingBackend(MemoryBackend()), MemoryBackend()] as [any SecretBackend] {
      try DefaultBackend.with(backend) { try VaultStored(Later.self).set(7) }
      #expect(try backend.items().isEmpty)
      try backend.close()
      #expect(try backend.text("value") == "7")
    }
  }

  @Test func aChangeThatCannotBeStoredKeepsNoBackendOpen() throws {
    let base = ClosingBackend()
    let failing = FailingBackend(base)
    try DefaultBackend.with(failing) { try VaultStored(Later.self).set(7) }
    failing.fail(.store, with: SecretError(.io, "The disk is full."))
    #expect(thrown { () throws(SecretError) in try failing.close() }?.code == .io)
    #expect(base.closings.value == 1)
    failing.recover()
    try DelayedSaves.flush()
    #expect(try base.text("value") == "7")
  }

  private final class ClosingBackend: ForwardingBackend, @unchecked Sendable {
    let closings = Count()
    init() { super.init(MemoryBackend()) }
    override func close() throws(SecretError) { closings.add() }
  }

  /// The delay begins with the first change, so that a value that changes all the time is stored too.
  @Test func changesWithoutAPauseDoNotPostponeTheSave() async throws {
    try await DefaultBackend.with(backend) {
      let counter = VaultStored(Shortly.self)
      let end = ContinuousClock.now + .seconds(30)
      while stores == 0, ContinuousClock.now < end { try await counter.update { $0 += 1 } }
      #expect(stores > 0)
      try await counter.flush()
    }
  }

  @Test func allObjectsOfTheValueReadIt() throws {
    try DefaultBackend.with(backend) { try VaultStored(Later.self).set(7) }
    // Its objects are gone, and the value still waits.
    try DefaultBackend.with(backend) { () throws in
      try VaultStored(Later.self).set(8)
      #expect(try VaultStored(Later.self).get() == 8)
    }
    #expect(stores == 0)
    try DelayedSaves.flush()
    #expect(try backend.text("value") == "8")
  }

  @Test func observersGetAChangeAtOnceAndOnce() async throws {
    try await DefaultBackend.with(backend) {
      let counter = VaultStored(Later.self)
      let changes = Count(observing: { _ = counter.wrappedValue })
      var values = counter.values.makeAsyncIterator()
      #expect(await values.next() == 0)
      try await counter.set(1)
      try await counter.set(1)
      #expect(changes.value == 1)
      try await counter.flush()
      try await backend.reportAndWait(nil)
      try await counter.set(2)
      #expect(await values.next() == 1)
      #expect(await values.next() == 2)
      try await counter.flush()
    }
  }

  @Test func aRemovalWaitsToo() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(Later.self)
      try backend.store.write("5", "value", version: "1")
      try counter.reset()
      #expect(counter.wrappedValue == 0)
      #expect(try backend.text("value") == "5")
      try counter.flush()
      #expect(try backend.items(inService: nil).isEmpty)
      try counter.reset()
      try counter.set(3)
      try counter.reset()
      try counter.flush()
      #expect(stores == 0)
    }
  }

  @Test func aStoreThatCannotBeReadIsReportedAtOnce() throws {
    try DefaultBackend.with(backend) { () throws in
      backend.edit { $0.lookupError = SecretError(.locked, "The keyring is locked.") }
      let counter = VaultStored(Later.self)
      #expect(thrown { () throws(SecretError) in try counter.set(1) }?.code == .locked)
      backend.edit { $0.lookupError = nil }
      #expect(try counter.get() == 0)
    }
  }

  @Test func aChangeThatCannotBeStoredIsReportedAndWaits() throws {
    try DefaultBackend.with(backend) { () throws in
      backend.edit { $0.storeError = SecretError(.io, "The disk is full.") }
      let counter = VaultStored(Later.self)
      try counter.set(1)
      #expect(thrown { () throws(SecretError) in try counter.flush() }?.code == .io)
      #expect(counter.lastError?.code == .io)
      #expect(thrown { () throws(SecretError) in try DelayedSaves.flush() }?.code == .io)
      #expect(counter.wrappedValue == 1)
      backend.edit { $0.storeError = nil }
      try DelayedSaves.flush()
      #expect(try backend.text("value") == "1")
    }
  }

  @Test func aFailureAfterTheDelayIsTheLastErrorUntilTheChangeIsStored() async throws {
    struct Soon: CounterStorage {
      static let backend = ScriptedBackend()
      static let storage = SecretScope(service: "tests", backend: backend)
      static let saveDelay = Duration.milliseconds(1)
    }
    Soon.backend.edit { $0.storeError = SecretError(.io, "The disk is full.") }
    let counter = VaultStored(Soon.self)
    try await counter.set(1)
    try await eventually("the failure was not reported") { counter.lastError?.code == .io }
    Soon.backend.edit { $0.storeError = nil }
    try await eventually("the change was not tried again") { try Soon.backend.text("value") == "1" }
    try await eventually("the failure stayed") { counter.lastError == nil }
  }

  @Test func theConversionOfAnEarlierVersionDoesNotWait() throws {
    try backend.store.write("5", "value")
    try DefaultBackend.with(backend) { () throws in
      let list = VaultStored(Converted.self)
      #expect(list.wrappedValue == [5])
      #expect(try backend.text("value") == "[5]")
      #expect(try backend.version("value") == "2")
      try list.append(6)
      #expect(try backend.text("value") == "[5]")
      try list.flush()
      #expect(try backend.text("value") == "[5,6]")
    }
  }

  @Test func concurrentUpdatesAndFlushesLoseNothing() async throws {
    let backend = MemoryBackend()
    try await DefaultBackend.with(backend) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<8 {
          group.addTask {
            let counter = VaultStored(Later.self)
            for round in 0..<25 {
              try await counter.update { $0 += 1 }
              if round % 8 == task { try await counter.flush() }
            }
          }
        }
        try await group.waitForAll()
      }
      try await DelayedSaves.flush()
    }
    #expect(try backend.text("value") == "200")
  }
}
