import Coffer
import CofferCore
import CofferTestSupport
import CofferTesting
import Foundation
import Observation
import Synchronization
import Testing

private struct Note: Codable, Sendable, Equatable, Identifiable {
  var id: String
  var text = ""
}

private final class NotesController: Sendable {
  private let stored: Stored<Note>
  var notes: [Note] { stored.wrappedValue }
  init(store: Store<Note>) { stored = Stored(in: store) }
}

private struct Notebook {
  @Stored var notes: [Note]
  init(store: Store<Note>) { _notes = Stored(in: store) }
  func add(_ note: Note) async throws { try await $notes.insert(note) }
}

/// Reads the items again after each change.
private actor Reader {
  let count = Mutex(0)
  /// What a sequence of observations has seen.
  let observed = Mutex(0)

  func read(_ store: Store<Note>) {
    let found = withObservationTracking {
      store.items.count
    } onChange: {
      Task { await self.read(store) }
    }
    // After the tracked closure, because a change before its end is not reported.
    count.withLock { $0 = found }
  }
}

@Suite(.timeLimit(.minutes(30))) struct StoreTests {
  let backend = FailingBackend()
  var scope: SecretScope { SecretScope(service: "notes", backend: backend) }

  private func load() async throws -> Store<Note> { try await Store<Note>(storage: scope) }

  /// A store that loads in the background.
  private func background() -> Store<Note> { Store<Note>(storage: scope) }

  private func notes(_ ids: String...) -> [Note] { ids.map { Note(id: $0) } }

  /// The events of a stream up to the first for which `isLast` is true.
  private func collect(
    _ stream: AsyncStream<StoreEvent<Note>>, until isLast: (StoreEvent<Note>) -> Bool
  ) async -> [StoreEvent<Note>] {
    var events: [StoreEvent<Note>] = []
    for await event in stream {
      events.append(event)
      if isLast(event) { break }
    }
    return events
  }

  @Test func aStoreThatCannotBeReadSaysSoAndTriesAgain() async throws {
    try backend.base.store(
      StandardSecretCoder().encode(Note(id: "a")), for: SecretIdentifier(service: "notes", account: "a"))
    backend.fail(.lookUp, with: SecretError(.unavailable, "Away."))
    let store = background()
    var events = store.events.makeAsyncIterator()
    var last: StoreEvent<Note>?
    while last?.error == nil, let event = await events.next() { last = event }
    #expect(last?.error?.code == .unavailable && last?.operation == .initialized)
    #expect(store.loadError?.code == .unavailable && store.items.isEmpty)
    // Another attempt with the same error is no event.
    while backend.count(of: .lookUp) < 2 { try await Task.sleep(for: .milliseconds(20)) }
    let isNotified = Mutex(false)
    withObservationTracking {
      _ = store.loadError
    } onChange: {
      isNotified.withLock { $0 = true }
    }
    backend.recover()
    let loaded = await events.next()
    #expect(loaded?.operation == .loaded && loaded?.items == notes("a") && loaded?.error == nil)
    #expect(store.loadError == nil && store.items == notes("a"))
    try await eventually("observers were not notified") { isNotified.withLock { $0 } }
  }

  @Test func aSecretThatDoesNotDecodeIsNeitherReplacedNorRemoved() async throws {
    let later = try SecretIdentifier(service: "notes", account: "a")
    try backend.store(SecretBytes("of a later release"), for: later)
    let store = try await load()
    #expect(store.failures[later]?.code == .decodingFailed)
    for change in [
      { try await store.insert(Note(id: "a")) }, { try await store.remove(Note(id: "a")) },
      { try await store.insert(notes("b", "a")) }, { try await store.removeAll().insert(Note(id: "a")).run() },
      { try await store.removeAll() },
    ] as [() async throws -> Void] {
      do { try await change() } catch { #expect((error as? SecretError)?.code == .decodingFailed) }
      #expect(try backend.lookUp(later)?.string() == "of a later release")
    }
    #expect(store.items.isEmpty)
  }

  @Test func afterHalfAChangeTheItemsAreThoseThatAreStored() async throws {
    let failing = FailingBackend(PlainBackend())
    let store = try await Store<Note>(storage: SecretScope(service: "notes", backend: failing))
    try await store.insert(notes("a", "b", "c"))
    failing.fail(.remove, with: SecretError(.io, "Not now."))
    let error = await #expect(throws: SecretError.self) {
      try await store.insert(Note(id: "d")).remove(Note(id: "a")).run()
    }
    #expect(error?.effect == .changed && store.items.map(\.id) == ["a", "b", "c", "d"])
  }

  @Test func itemsAreInTheOrderOfInsertionAlsoAfterARestart() async throws {
    let store = try await load()
    try await store.insert(Note(id: "b"))
    try await store.insert(notes("c", "a"))
    try await store.insert(Note(id: "0"))
    #expect(store.items.map(\.id) == ["b", "c", "a", "0"])
    #expect(store[id: "a"] == Note(id: "a") && store[id: "x"] == nil && store[id: ""] == nil)
    #expect(try await load().items == store.items)
  }

  @Test(arguments: [Int64.max, Int64.max - 1, Int64.max / 2])
  func aPlaceThatAnotherProgramChoseLeavesRoomForMore(_ order: Int64) async throws {
    let metadata = SecretMetadata(attributes: ["coffer.order": "\(order)"])
    try backend.store(
      SecretBytes(#"{"id":"x","text":""}"#),
      for: SecretIdentifier(service: "notes", account: "x"), metadata: metadata)
    let store = try await load()
    for id in ["a", "b"] { try await store.insert(Note(id: id)) }
    #expect(Set(store.items.map(\.id)) == ["a", "b", "x"])
    #expect(try await load().items == store.items)
  }

  @Test func noReadThatFollowsAChangeShowsAPrompt() async throws {
    let backend = ScriptedBackend()
    let store = try await Store<Note>(storage: SecretScope(service: "notes", backend: backend))
    let identifier = try SecretIdentifier(service: "notes", account: "a")
    try backend.store.store(SecretBytes(#"{"id":"a","text":""}"#), for: identifier)
    for (number, change) in [nil, identifier].enumerated() {
      backend.report(change)
      try await eventually("the store does not read again") { backend.lookupsWithoutPrompts == number + 1 }
    }
    try await eventually("the item does not appear") { store.items.map(\.id) == ["a"] }
  }

  @Test func insertIsAnUpsertInPlace() async throws {
    let store = try await load()
    try await store.insert(notes("a", "b", "c"))
    try await store.insert(Note(id: "b", text: "new"))
    #expect(store.items == [Note(id: "a"), Note(id: "b", text: "new"), Note(id: "c")])
    #expect(try await load().items == store.items)
  }

  @Test func aBatchIsDeduplicatedAndTheLastWins() async throws {
    let store = try await load()
    try await store.insert([Note(id: "a", text: "1"), Note(id: "b"), Note(id: "a", text: "2")])
    #expect(store.items == [Note(id: "a", text: "2"), Note(id: "b")])
  }

  @Test func removedItemsStayRemoved() async throws {
    let store = try await load()
    try await store.insert(notes("a", "b", "c", "d"))
    try await store.remove(Note(id: "b"))
    try await store.remove(notes("c", "absent"))
    #expect(store.items.map(\.id) == ["a", "d"])
    #expect(try await load().items.map(\.id) == ["a", "d"])
    try await store.removeAll()
    #expect(store.items.isEmpty)
    #expect(try await load().items.isEmpty)
  }

  /// A few are removed in another way than many.
  @Test(arguments: [1, 7, 8, 19, 20]) func whatIsRemovedAndInsertedAgainIsAtTheEnd(_ count: Int) async throws {
    let store = try await load()
    var ids = (0..<20).map { "\($0 * 7 % 20)" }
    try await store.insert(ids.map { Note(id: $0) })
    let removed = (0..<count).map { "\($0)" }
    ids.removeAll { removed.contains($0) }
    try await store.remove(removed.map { Note(id: $0) })
    #expect(store.items.map(\.id) == ids)
    for id in removed {
      try await store.insert(Note(id: id))
      ids.append(id)
      #expect(store.items.map(\.id) == ids)
    }
    #expect(try await load().items.map(\.id) == ids)
  }

  @Test func aChainActsOnlyWhenItRunsAndOnce() async throws {
    let store = try await load()
    try await store.insert(notes("old"))
    let chain = await store.removeAll().insert(notes("a", "b")).remove(Note(id: "a"))
    #expect(store.items.map(\.id) == ["old"])
    try await chain.run()
    #expect(store.items.map(\.id) == ["b"])
    try await store.insert(Note(id: "later"))
    try await chain.run()
    #expect(store.items.map(\.id) == ["b", "later"])
    #expect(try await load().items.map(\.id) == ["b", "later"])
  }

  @Test func aChainIsOneTransaction() async throws {
    let store = try await load()
    try await store.insert(notes("old"))
    backend.fail(.commit, with: SecretError(.io, "The disk is full."))
    let chain = await store.removeAll().insert(Note(id: "new"))
    // The second fails after the chain has removed the old item.
    for call in [FailingBackend.Call.commit, .store] {
      backend.recover()
      backend.fail(call, with: SecretError(.io, "The disk is full."))
      let error = await #expect(throws: SecretError.self) { try await chain.run() }
      #expect(error?.code == .io)
      #expect(store.items.map(\.id) == ["old"])
      #expect(try backend.base.items(inService: "notes").map(\.identifier.account) == ["old"])
    }
    backend.recover()
    try await chain.run()
    #expect(store.items.map(\.id) == ["new"])
  }

  @Test func everySubscriberGetsEveryEvent() async throws {
    let store = background()
    try await store.itemsHaveLoaded()
    let streams = (0..<3).map { _ in store.events }
    try await store.insert(notes("a", "b"))
    try await store.remove(Note(id: "a"))
    try await store.removeAll()
    for stream in streams {
      let events = await collect(stream) { $0.operation == .remove && $0.items.map(\.id) == ["b"] }
      #expect(events.map(\.operation) == [.loaded, .insert, .remove, .remove])
      #expect(events.map { $0.items.map(\.id) } == [[], ["a", "b"], ["a"], ["b"]])
    }
  }

  @Test func aNewStoreIsInitializedAndThenLoaded() async throws {
    let first = try await load()
    try await first.insert(Note(id: "a"))
    backend.fail(.lookUp, with: SecretError(.locked, "The test says so."))
    let store = background()
    let stream = store.events
    await #expect(throws: SecretError.self) { try await store.itemsHaveLoaded() }
    #expect(store.items.isEmpty)
    backend.recover()
    try await store.itemsHaveLoaded()
    let events = await collect(stream) { $0.operation == .loaded }
    #expect(events.dropLast().allSatisfy { $0.operation == .initialized })
    #expect(events.dropLast().last?.error?.code == .locked)
    #expect(events.last?.items == [Note(id: "a")])
  }

  @Test func aStoreThatCannotBeReadIsNotAnEmptyOne() async throws {
    backend.fail(.lookUp, with: SecretError(.locked, "The test says so."))
    let error = await #expect(throws: SecretError.self) { try await load() }
    #expect(error?.code == .locked)
  }

  @Test func anInsertDuringTheFirstLoadIsKept() async throws {
    try await load().insert(notes("a"))
    for _ in 0..<20 {
      let store = background()
      try await store.insert(Note(id: "b"))
      #expect(store.items.map(\.id) == ["a", "b"])
    }
  }

  @Test func aChangeToAStoreThatIsNotLoadedLoadsItFirst() async throws {
    try backend.write(#"{"id":"a","text":""}"#, "a", service: "notes")
    backend.fail(.lookUp, with: SecretError(.locked, "The test says so."), times: 1)
    let before = backend.count(of: .lookUp)
    let store = background()
    try await eventually("the store was not loaded") { backend.count(of: .lookUp) > before }
    try await store.insert(Note(id: "b"))
    #expect(store.items.map(\.id) == ["a", "b"])
  }

  @Test func anItemThatDoesNotDecodeIsReportedAndKeptAndHidesNoOther() async throws {
    try await load().insert(notes("a", "b"))
    try backend.write("no note: canary", "broken", service: "notes")
    let store = try await load()
    #expect(Set(store.items.map(\.id)) == ["a", "b"])
    let broken = try SecretIdentifier(service: "notes", account: "broken")
    #expect(store.failures[broken]?.code == .decodingFailed)
    #expect(!String(describing: store.failures).contains("canary"))
    try await store.removeAll()
    #expect(try backend.text("broken", service: "notes") == "no note: canary")
    try backend.remove(broken)
    try await eventually("the failure stayed") { store.failures.isEmpty }
    try await store.insert(Note(id: "broken", text: "mended"))
    #expect(store.items == [Note(id: "broken", text: "mended")])
  }

  @Test func aReadThatFailsAfterAChangeIsTriedAgain() async throws {
    let store = try await load()
    let value = SecurelyStoredValue<String>(key: "v", service: "values", backend: backend)
    let found = Mutex<[String?]>([])
    let task = Task { for await result in value.results { found.withLock { $0.append(try? result.get()) } } }
    defer { task.cancel() }
    try await eventually("no first value") { found.withLock { $0.count } == 1 }
    backend.fail(.lookUp, with: SecretError(.timedOut, "Busy."), times: 2)
    try backend.base.write(#"{"id":"a","text":""}"#, "a", service: "notes")
    try backend.base.write("1", "v", service: "values")
    try await eventually("the store did not follow") { store.items.map(\.id) == ["a"] }
    try await eventually("the stream did not follow") { found.withLock { $0.last } == "1" }
  }

  @Test func aFailureEndsWhenItsSecretIsRemovedElsewhere() async throws {
    try backend.write("no note", "broken", service: "notes")
    let store = try await load()
    #expect(store.failures.count == 1)
    try backend.remove(SecretIdentifier(service: "notes", account: "broken"))
    try await eventually("the failure stayed") { store.failures.isEmpty }
  }

  @Test func changesByAnotherStoreAppear() async throws {
    let (one, two) = (try await load(), try await load())
    let stream = two.events
    try await one.insert(notes("a", "b"))
    try await one.remove(Note(id: "a"))
    try await eventually("the other store did not follow") { two.items.map(\.id) == ["b"] }
    try await two.insert(Note(id: "c"))
    try await eventually("the other store did not follow") { one.items.map(\.id) == ["b", "c"] }
    let events = await collect(stream) { $0.items.map(\.id) == ["c"] }
    #expect(events.first?.operation == .loaded)
    try await one.remove(Note(id: "b"))
    try await eventually("the other store did not follow") { two.items.map(\.id) == ["c"] }
  }

  @Test func aChangeByAnotherProcessDuringTheLoadAppears() async throws {
    let backend = ScriptedBackend()
    try backend.write(#"{"id":"a","text":""}"#, "a", service: "notes")
    backend.afterNextLookup { [unowned backend] in
      try backend.store.write(#"{"id":"b","text":""}"#, "b", service: "notes")
      backend.report(try identifier("b", service: "notes"))
    }
    let store = try await Store<Note>(storage: SecretScope(service: "notes", backend: backend))
    try await eventually("the change did not appear") { store.items.map(\.id) == ["a", "b"] }
  }

  @Test func aStoreDoesNotReadItsOwnChangesBack() async throws {
    let store = try await load()
    let (before, rounds) = (backend.count(of: .lookUp), 10)
    for round in 0..<rounds {
      try await store.insert(Note(id: "own \(round)"))
      let account = "foreign \(round)"
      try backend.base.write(#"{"id":"\#(account)","text":""}"#, account, service: "notes")
      try await eventually("the change did not appear") { store.items.contains { $0.id == account } }
    }
    #expect(backend.count(of: .lookUp) - before <= rounds)
  }

  @Test func concurrentChangesOfTwoStoresLoseNothing() async throws {
    let stores = [try await load(), try await load()]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, store) in stores.enumerated() {
        for round in 0..<50 { group.addTask { try await store.insert(Note(id: "\(number).\(round)")) } }
      }
      try await group.waitForAll()
    }
    #expect(try await load().items.count == 100)
    for store in stores { try await eventually("an item is missing") { store.items.count == 100 } }
    #expect(stores[0].items == stores[1].items)
  }

  @Test func anUnreadStreamOfEventsIsBounded() async throws {
    let store = try await load()
    let stream = store.events
    try await store.remove(Array(repeating: Note(id: "absent"), count: 100_000))
    try await store.insert(Note(id: "a"))
    let events = await collect(stream) { $0.operation == .insert }
    #expect(events.map(\.operation) == [.insert])
  }

  /// The clock of the program that stored the last item was ahead, or this one's went back.
  @Test func aNewItemIsTheLastAlsoIfTheClockWentBack() async throws {
    try backend.store(
      SecretBytes(#"{"id":"z","text":""}"#), for: identifier("z", service: "notes"),
      metadata: SecretMetadata(attributes: ["coffer.order": "0009000000000000000"]))
    try await load().insert(notes("b", "a"))
    #expect(try await load().items.map(\.id) == ["z", "b", "a"])
  }

  @Test func observationReportsChanges() async throws {
    let store = try await load()
    let changes = Count(observing: { _ = store.items })
    try await store.insert(Note(id: "a"))
    #expect(changes.value == 1)
  }

  @Test func anObserverReadsTheNewItemsAndMayWaitForAnotherChange() async throws {
    let store = try await load()
    let seen = Mutex<[String]>([])
    withObservationTracking {
      _ = store.items
    } onChange: {
      seen.withLock { $0 = store.items.map(\.id) }
      let done = DispatchSemaphore(value: 0)
      Task(executorPreference: QueueExecutor()) {
        await #expect(throws: Never.self) { try await store.insert(Note(id: "b")) }
        done.signal()
      }
      #expect(done.wait(timeout: .now() + 60) == .success)
    }
    try await store.insert(Note(id: "a"))
    #expect(seen.withLock { $0 } == ["a"])
    #expect(store.items.map(\.id) == ["a", "b"])
  }

  /// Two observers: the actor that reads the items again, and a sequence of observations on the main actor.
  @Test(arguments: [false, true]) func observersOnOtherActorsSeeEveryChange(inVault: Bool) async throws {
    let directory = try TemporaryDirectory(inMemory: true)
    var storage = scope
    if inVault {
      let (path, key) = (directory.file("test.vault"), [UInt8](repeating: 7, count: 32))
      try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
      let vault = VaultBackend(path: path, key: SecretBytes(key))
      storage = SecretScope(service: "notes", backend: vault)
    }
    let (store, reader) = (try await Store<Note>(storage: storage), Reader())
    await reader.read(store)
    let observer = Task { @MainActor in
      for await count in Observations({ store.items.count }) { reader.observed.withLock { $0 = count } }
    }
    defer { observer.cancel() }
    for number in 1...200 {
      try await store.insert(Note(id: "\(number)"))
      try await eventually("an observer has not seen the insert") {
        reader.count.withLock { $0 } == number && reader.observed.withLock { $0 } == number
      }
      try #require(reader.count.withLock { $0 } == number && reader.observed.withLock { $0 } == number)
    }
  }

  @Test func aPropertyIsTheItemsAndItsProjectionTheStore() async throws {
    let store = try await load()
    let notebook = Notebook(store: store)
    try await notebook.add(Note(id: "a"))
    #expect(notebook.notes == [Note(id: "a")])
    #expect(notebook.$notes === store)
    #expect(NotesController(store: store).notes.count == 1)
  }

  @Test func itemsAreIdentifiedByUUIDsIntegersOrAKeyPath() async throws {
    struct Numbered: Codable, Sendable, Equatable, Identifiable { var id: Int }
    struct Unique: Codable, Sendable, Equatable, Identifiable { var id = UUID() }
    struct Named: Codable, Sendable, Equatable { var name: String }
    func accounts(_ service: String) throws -> [String] {
      try backend.items(inService: service).map(\.identifier.account)
    }
    let numbers = try await Store<Numbered>(storage: SecretScope(service: "numbers", backend: backend))
    try await numbers.insert([Numbered(id: 2), Numbered(id: -1)])
    #expect(try accounts("numbers") == ["-1", "2"])
    let unique = Unique()
    let ids = try await Store<Unique>(storage: SecretScope(service: "ids", backend: backend))
    try await ids.insert(unique)
    #expect(try accounts("ids") == [unique.id.uuidString])
    let names = try await Store<Named>(
      storage: SecretScope(service: "names", backend: backend), cacheIdentifier: \.name)
    try await names.insert(Named(name: "Ann"))
    #expect(try accounts("names") == ["Ann"])
    let error = await #expect(throws: SecretError.self) { try await names.insert(Named(name: "")) }
    #expect(error?.code == .invalidIdentifier)
  }
}

/// Runs a task on a queue, because the test blocks a thread of the global executor, and other tests may block the rest.
private final class QueueExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "tests.task")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
