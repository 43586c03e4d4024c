import CofferTestSupport
import Coffer
import CofferCore
import Dispatch
import Observation
import Synchronization
import Testing

@Observable
private final class Account {
  @ObservationIgnored
  @SecurelyStoredValue<String> var token: String?

  init(backend: any SecretBackend, key: String = "token") {
    _token = SecurelyStoredValue(key: key, service: "tests", backend: backend)
  }
}

@Suite(.timeLimit(.minutes(30))) struct ObservationTests {
  let backend = ScriptedBackend()
  let identifier: SecretIdentifier

  init() throws { identifier = try SecretIdentifier(service: "tests", account: "token") }

  @Test func observationReportsAWriteThroughTheModel() throws {
    let account = Account(backend: backend)
    let first = Count(observing: { #expect(account.token == nil) })
    try account.$token.set("one")
    #expect(first.value == 1)
    let second = Count(observing: { #expect(account.token == "one") })
    try account.$token.set(nil)
    #expect(second.value == 1)
    let third = Count(observing: { #expect(account.token == nil) })
    try account.$token.remove()
    #expect(third.value == 0, "removing an absent value was published")
  }

  @Test func observationTracksGet() throws {
    let account = Account(backend: backend)
    let changes = Count(observing: { #expect(throws: Never.self) { try account.$token.get() } })
    try account.$token.set("one")
    #expect(changes.value == 1)
  }

  @Test func observationReportsAWriteOfAnotherProcess() async throws {
    let account = Account(backend: backend)
    let changes = Count(observing: { _ = account.token })
    try backend.store.write("foreign", "token")
    backend.report(identifier)
    try await eventually("Observation did not fire") { changes.value == 1 }
    #expect(account.token == "foreign")
  }

  @Test func aChangeOfAllSecretsIsRead() async throws {
    let account = Account(backend: backend)
    let changes = Count(observing: { _ = account.token })
    try await backend.reportAndWait(nil)
    #expect(changes.value == 0)
    try backend.store.write("foreign", "token")
    backend.report(nil)
    try await eventually("Observation did not fire") { changes.value == 1 }
  }

  @Test(arguments: [true, false])
  func theFirstSuccessfulReadAfterAFailureIsPublished(wasReadBefore: Bool) async throws {
    try backend.write("one", "token")
    let account = Account(backend: backend)
    if wasReadBefore { #expect(account.token == "one") }
    backend.edit { $0.lookupError = SecretError(.locked, "The keyring is locked.") }
    let changes = Count(observing: { #expect(account.token == nil) })
    backend.edit { $0.lookupError = nil }
    backend.report(nil)
    try await eventually("Observation did not fire") { changes.value == 1 }
    #expect(account.token == "one")
  }

  @Test func aFailureIsPublished() async throws {
    try backend.write("one", "token")
    let account = Account(backend: backend)
    let changes = Count(observing: { #expect(account.token == "one") })
    backend.edit { $0.lookupError = SecretError(.unavailable, "The keyring stopped.") }
    backend.report(nil)
    try await eventually("Observation did not fire") { changes.value == 1 }
  }

  @Test func anObserverMayReadAndWrite() throws {
    let account = Account(backend: backend)
    let other = Account(backend: backend, key: "other")
    let seen = Mutex<[String?]>([])
    let (token, copy) = (account.$token, other.$token)
    withObservationTracking {
      _ = account.token
    } onChange: {
      seen.withLock { $0.append(token.wrappedValue) }
      #expect(throws: Never.self) { try copy.set("copied") }
      // It may also write the value that it observes.
      #expect(throws: Never.self) { try token.set("replaced") }
    }
    try account.$token.set("one")
    #expect(seen.withLock { $0 } == ["one"])
    #expect(other.token == "copied")
    #expect(account.token == "replaced")
  }

  @Test func anObserverMayWaitForAnotherThreadsWrite() throws {
    let account = Account(backend: backend)
    let token = account.$token
    withObservationTracking {
      _ = account.token
    } onChange: {
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        #expect(throws: Never.self) { try token.set("from another thread") }
        done.signal()
      }
      #expect(done.wait(timeout: .now() + 60) == .success)
    }
    try account.$token.set("one")
    #expect(account.token == "from another thread")
  }

  @Test func theFirstTrackedReadStartsTheOnlyWatch() throws {
    let account = Account(backend: backend)
    #expect(backend.edit { $0.watchersEver } == 0)
    try account.$token.set("one")
    #expect(backend.edit { $0.watchersEver } == 0)
    for _ in 0..<3 { _ = Count(observing: { _ = account.token }) }
    _ = account.$token.values
    #expect(backend.edit { $0.watchersEver } == 1)
  }
}
