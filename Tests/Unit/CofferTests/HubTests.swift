@testable import Coffer
import CofferTestSupport
import CofferCore
import Foundation
import Observation
import Testing

@Suite(.timeLimit(.minutes(5))) struct HubTests {
  @Test func theHubAndTheWatchEndWithTheLastValue() async throws {
    let backend = ScriptedBackend()
    weak var hub: ValueHub?
    do {
      let one = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
      let two = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
      hub = try HubRegistry.shared.hub(
        for: SecretIdentifier(service: "tests", account: "token"),
        backend: backend,
        source: .process
      )
      _ = (one.wrappedValue, two.wrappedValue)
      try one.set("one")
      var values = two.values.makeAsyncIterator()
      #expect(await values.next() == .some("one"))
      #expect(backend.watchers == 1)
      #expect(hub != nil)
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

  @Test func aReleasedStreamIsUnsubscribed() async throws {
    let backend = ScriptedBackend()
    weak var hub: ValueHub?
    do {
      let value = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
      hub = try HubRegistry.shared.hub(
        for: SecretIdentifier(service: "tests", account: "token"),
        backend: backend,
        source: .process
      )
      for _ in 0..<10 { _ = value.values }
      try await eventually("streams were not released") { hub?.subscriberCount == 0 }
      let kept = value.values
      #expect(hub?.subscriberCount == 1)
      _ = kept
    }
    try await eventually("the hub was not released") { hub == nil }
  }

  @Test func theRegistryRemovesReleasedHubs() throws {
    let registry = HubRegistry()
    let backend = MemoryBackend()
    let identifier = try SecretIdentifier(service: "tests", account: "token")
    var hub: ValueHub? = registry.hub(for: identifier, backend: backend, source: .process)
    #expect(registry.count == 1)
    #expect(registry.hub(for: identifier, backend: backend, source: .process) === hub)
    #expect(registry.hub(for: identifier, backend: MemoryBackend(), source: .process) !== hub)
    hub = nil
    #expect(registry.count == 0)
  }

  @Test func aBackendOfAValueTypeWorks() throws {
    struct Wrapped: SecretBackend {
      let store = MemoryBackend()
      func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
        try store.lookUp(identifier)
      }
      func store(
        _ secret: borrowing SecretBytes,
        for identifier: SecretIdentifier,
        metadata: SecretMetadata?
      ) throws(SecretError) { try store.store(secret, for: identifier, metadata: metadata) }
      func remove(_ identifier: SecretIdentifier) throws(SecretError) -> Bool { try store.remove(identifier) }
      func items(inService service: String?) throws(SecretError) -> [SecretItem] {
        try store.items(inService: service)
      }
    }
    let backend = Wrapped()
    let one = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    let two = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    let changes = Count()
    withObservationTracking {
      _ = one.wrappedValue
    } onChange: {
      changes.add()
    }
    try two.set("one")
    #expect(one.wrappedValue == "one")
    try one.set("two")
    #expect(changes.value == 1)
  }

  @Test func aFailedChoiceIsReportedAndRetried() throws {
    let attempts = Count()
    let backend = MemoryBackend()
    let source = BackendSource { () throws(SecretError) in
      attempts.add()
      if attempts.value < 4 { throw SecretError(.configuration, "There is no store yet.") }
      return backend
    }
    let token = SecurelyStoredValue<String>(
      key: "token",
      service: "tests",
      backend: nil,
      coder: StandardSecretCoder(),
      source: source
    )
    let other = SecurelyStoredValue<String>(
      key: "token",
      service: "tests",
      backend: nil,
      coder: StandardSecretCoder(),
      source: source
    )
    #expect(attempts.value == 0)
    let changes = Count()
    withObservationTracking {
      #expect(token.wrappedValue == nil)
    } onChange: {
      changes.add()
    }
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
    try backend.transaction { _ throws(SecretError) in
      #expect(thrown { () throws(SecretError) in _ = try token.get() }?.code == .conflict)
      #expect(thrown { () throws(SecretError) in try token.set("two") }?.code == .conflict)
      #expect(thrown { () throws(SecretError) in try token.remove() }?.code == .conflict)
    }
    #expect(token.wrappedValue == "one")
  }
}
