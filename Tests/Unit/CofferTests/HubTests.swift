@testable import Coffer
import CofferTestSupport
import CofferCore
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct HubTests {
  @Test func theHubAndTheWatchEndWithTheLastValue() async throws {
    let backend = ScriptedBackend()
    weak var hub: ValueHub?
    do {
      let one = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
      let two = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
      _ = (one.wrappedValue, two.wrappedValue)
      hub = try HubRegistry.shared.hub(
        for: SecretIdentifier(service: "tests", account: "token"), source: BackendSource(given: backend))
      try await one.set("one")
      var values = two.values.makeAsyncIterator()
      #expect(await values.next() == .some("one"))
      #expect(backend.watchers == 1)
      #expect(hub != nil)
      withExtendedLifetime((one, two)) {}
    }
    try await eventually("the hub was not released") { hub == nil }
    try await eventually("the backend is still watched") { backend.watchers == 0 }
  }

  @Test func aStreamKeepsItsHub() async throws {
    let backend = ScriptedBackend()
    let stream = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend).values
    try write("foreign", backend)
    try await backend.reportAndWait(nil)
    var values = stream.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    #expect(await values.next() == .some("foreign"))
  }

  private func write(_ text: String, _ backend: ScriptedBackend) throws {
    try backend.store.write(text, "token")
  }

  private func subscriberCount(_ hub: ValueHub?) -> Int? { hub?.state.withLock { $0.subscribers.count } }

  @Test func aReleasedStreamIsUnsubscribed() async throws {
    let backend = ScriptedBackend()
    weak var hub: ValueHub?
    do {
      let value = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
      _ = value.wrappedValue
      hub = try HubRegistry.shared.hub(
        for: SecretIdentifier(service: "tests", account: "token"), source: BackendSource(given: backend))
      for _ in 0..<10 { _ = value.values }
      try await eventually("streams were not released") { subscriberCount(hub) == 0 }
      let kept = value.values
      #expect(subscriberCount(hub) == 1)
      _ = kept
    }
    try await eventually("the hub was not released") { hub == nil }
  }

  @Test func theRegistryRemovesReleasedHubs() throws {
    let registry = HubRegistry()
    let backend = MemoryBackend()
    let identifier = try SecretIdentifier(service: "tests", account: "token")
    var hub: ValueHub? = registry.hub(for: identifier, source: BackendSource(given: backend))
    #expect(registry.entries.withLock { $0.count } == 1)
    #expect(registry.hub(for: identifier, source: BackendSource(given: backend)) === hub)
    #expect(registry.hub(for: identifier, source: BackendSource(given: MemoryBackend())) !== hub)
    hub = nil
    #expect(registry.entries.withLock { $0.count } == 0)
  }

  @Test func aFailedChoiceIsReportedAndRetried() throws {
    let attempts = Count()
    let backend = MemoryBackend()
    let source = BackendSource(retryPause: .seconds(600)) { () throws(SecretError) in
      attempts.add()
      if attempts.value < 4 { throw SecretError(.configuration, "There is no store yet.") }
      return backend
    }
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", source: source)
    let other = SecurelyStoredValue<String>(key: "token", service: "tests", source: source)
    #expect(attempts.value == 0)
    let changes = Count(observing: { #expect(token.wrappedValue == nil) })
    #expect(token.lastError?.code == .configuration)
    #expect(thrown { () throws(SecretError) in _ = try token.get() }?.code == .configuration)
    #expect(thrown { () throws(SecretError) in try token.set("x") }?.code == .configuration)
    #expect(changes.value == 0)
    try other.set("one")
    #expect(changes.value == 1)
    #expect(token.wrappedValue == "one")
    #expect(attempts.value == 4)
  }

  @Test func aValueThrowsConflictInATransactionOfItsBackend() throws {
    let backend = MemoryBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    try token.set("one")
    try backend.withTransaction { _ throws(SecretError) in
      #expect(thrown { () throws(SecretError) in _ = try token.get() }?.code == .conflict)
      #expect(thrown { () throws(SecretError) in try token.set("two") }?.code == .conflict)
      #expect(thrown { () throws(SecretError) in try token.remove() }?.code == .conflict)
    }
    #expect(token.wrappedValue == "one")
  }

  @Test func valuesThatBeganWithoutABackendGoOnWhenThereIsOne() async throws {
    let backend = MemoryBackend()
    try backend.write("stored", "token")
    let isReady = Mutex(false)
    let source = BackendSource(retryPause: .milliseconds(5)) { () throws(SecretError) in
      if !isReady.withLock({ $0 }) { throw SecretError(.noBackend, "There is no store yet.") }
      return backend
    }
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", source: source)
    var values = token.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    #expect(token.lastError?.code == .noBackend)
    isReady.withLock { $0 = true }
    #expect(await values.next() == .some("stored"))
    #expect(token.lastError == nil)
    // From now on the backend is watched.
    try backend.write("changed", "token")
    #expect(await values.next() == .some("changed"))
  }

  @Test func aTrackedReadThatFoundNoBackendIsPublishedWhenThereIsOne() async throws {
    let backend = MemoryBackend()
    let isReady = Mutex(false)
    let source = BackendSource(retryPause: .milliseconds(5)) { () throws(SecretError) in
      if !isReady.withLock({ $0 }) { throw SecretError(.noBackend, "There is no store yet.") }
      return backend
    }
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", source: source)
    let changes = Count(observing: { _ = token.wrappedValue })
    isReady.withLock { $0 = true }
    try await eventually("Observation did not fire") { changes.value == 1 }
  }

  @Test func onlyWhatSomebodyObservesIsWatched() async throws {
    let backend = ScriptedBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    #expect(try token.result.get() == nil)
    try await token.set("one")
    #expect(try await token.get() == "one")
    #expect(backend.edit { $0.watchersEver } == 0)
    do {
      let stream = token.values
      #expect(backend.watchers == 1)
      withExtendedLifetime(stream) {}
    }
    try await eventually("the backend is watched after the stream's end") { backend.watchers == 0 }
    _ = Count(observing: { _ = token.wrappedValue })
    #expect(backend.watchers == 1)
  }

  @Test func manyWaitingHubsDoNotKeepTasksFromRunning() async throws {
    let backend = ScriptedBackend()
    let tokens = (0..<16).map {
      SecurelyStoredValue<String>(key: "token \($0)", service: "tests", backend: backend)
    }
    let streams = tokens.map { $0.values }
    let (gate, waiting, late) = (DispatchSemaphore(value: 0), Count(), Count())
    backend.edit { script in
      script.beforeLookup = {
        waiting.add()
        if gate.wait(timeout: .now() + 240) == .timedOut { late.add() }
        gate.signal()
      }
    }
    backend.report(nil)
    // The reads end only if this task gets a thread while all of them wait.
    while waiting.value < 16 { await Task.yield() }
    await Task { _ = gate.signal() }.value
    #expect(late.value == 0)
    withExtendedLifetime(streams) {}
  }

  @Test func anUnreadStreamOfLargeValuesIsBounded() async throws {
    let backend = MemoryBackend(history: .none)
    let value = SecurelyStoredValue<[UInt8]>(key: "large", service: "tests", backend: backend)
    let stream = value.values
    let size = 100_000
    for number in 0..<100 { try await value.set([UInt8](repeating: UInt8(number), count: size)) }
    var kept: [UInt8] = []
    for await value in stream {
      if let first = value?.first { kept.append(first) }
      if kept.last == 99 { break }
    }
    #expect(kept == Array(90...99))
  }
}
