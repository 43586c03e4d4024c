import CofferTestSupport
import Coffer
import CofferCore
import CofferTesting
import Foundation
import Observation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct ValuesTests {
  let backend = ScriptedBackend()
  let identifier: SecretIdentifier
  let token: SecurelyStoredValue<String>

  init() throws {
    identifier = try SecretIdentifier(service: "tests", account: "token")
    token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
  }

  /// The values of the stream up to and including `last`.
  private func collect(_ stream: AsyncStream<String?>, until last: String) async -> [String?] {
    var values: [String?] = []
    for await value in stream {
      values.append(value)
      if value == last { break }
    }
    return values
  }

  @Test func aStreamBeginsWithTheCurrentValue() async throws {
    try write("current")
    var values = token.values.makeAsyncIterator()
    #expect(await values.next() == .some("current"))
  }

  @Test func aStreamOfResultsTellsMissingFromUnreadable() async throws {
    let failing = FailingBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: failing)
    let stored = StoredValue<String>(key: "token", default: "none", service: "tests", backend: failing)
    failing.fail(.lookUp, with: SecretError(.unavailable, "Away."))
    var results = token.results.makeAsyncIterator()
    var others = stored.results.makeAsyncIterator()
    let (first, other) = (await results.next(), await others.next())
    #expect(code(first) == .unavailable && code(other) == .unavailable)
    failing.recover()
    try await token.set("a")
    let (second, others2) = (await results.next(), await others.next())
    #expect(try second?.get() == "a" && others2?.get() == "a")
    try await token.remove()
    let (third, others3) = (await results.next(), await others.next())
    #expect(try third?.get() == .some(nil) && others3?.get() == "none")
    failing.fail(.lookUp, with: SecretError(.locked, "Locked."))
    var later = token.results.makeAsyncIterator()
    let last = await later.next()
    #expect(code(last) == .locked)
  }

  private func code<T>(_ result: Result<T, SecretError>?) -> SecretError.Code? {
    if case .failure(let error) = result { error.code } else { nil }
  }

  private func write(_ text: String) throws { try backend.store.write(text, "token") }
  private func set(_ text: String?) throws { try token.set(text) }

  @Test func aStreamYieldsEachChangeOnceAndInOrder() async throws {
    let stream = token.values
    for text in ["a", "b", nil, "b", "b", "last"] { try set(text) }
    #expect(await collect(stream, until: "last") == [nil, "a", "b", nil, "b", "b", "last"])
  }

  @Test func eachSubscriberGetsEveryChange() async throws {
    let streams = (0..<3).map { _ in token.values }
    let other = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend).values
    for text in ["a", "b", "last"] { try set(text) }
    for stream in streams + [other] {
      #expect(await collect(stream, until: "last") == [nil, "a", "b", "last"])
    }
  }

  @Test func aLateSubscriberBeginsWithTheLatest() async throws {
    let early = token.values
    try set("a")
    let late = token.values
    try set("last")
    #expect(await collect(early, until: "last") == [nil, "a", "last"])
    #expect(await collect(late, until: "last") == ["a", "last"])
  }

  @Test func aSubscriberDuringADeliveryDoesNotGetTheChangeTwice() async throws {
    let token = token
    let late = Mutex<AsyncStream<String?>?>(nil)
    withObservationTracking {
      _ = token.wrappedValue
    } onChange: {
      late.withLock { $0 = token.values }
    }
    try set("a")
    try set("last")
    let stream = try #require(late.withLock { $0 })
    #expect(await collect(stream, until: "last") == ["a", "last"])
  }

  @Test func theBackendsReportOfAnOwnWriteIsNotPublished() async throws {
    let stream = token.values
    for text in ["a", "b"] {
      try set(text)
      for _ in 0..<3 { try await backend.reportAndWait(identifier) }
      try await backend.reportAndWait(nil)
    }
    try set("last")
    #expect(await collect(stream, until: "last") == [nil, "a", "b", "last"])
  }

  @Test func aWriteIsNotReadBackAndAChangeByOthersIsRead() async throws {
    let backend = FailingBackend()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    var values = token.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    let (before, rounds) = (backend.count(of: .lookUp), 10)
    for round in 0..<rounds {
      try await token.set("own \(round)")
      #expect(await values.next() == "own \(round)")
      try backend.base.write("foreign \(round)", "token")
      #expect(await values.next() == "foreign \(round)")
    }
    #expect(backend.count(of: .lookUp) - before <= rounds)
  }

  @Test func aStreamYieldsChangesOfAnotherProcess() async throws {
    let stream = token.values
    try set("a")
    try write("foreign")
    try await backend.reportAndWait(identifier)
    try await backend.reportAndWait(identifier)
    _ = try remove()
    try await backend.reportAndWait(nil)
    try set("last")
    #expect(await collect(stream, until: "last") == [nil, "a", "foreign", nil, "last"])
  }

  private func remove() throws -> Bool { try backend.store.remove(identifier) }

  @Test func changesOfOtherSecretsAreIgnored() async throws {
    var values = token.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    let before = backend.lookups
    backend.report(try SecretIdentifier(service: "tests", account: "other"))
    // Changes arrive in order, so the other change was ignored before this one was read.
    try await backend.reportAndWait(identifier)
    #expect(backend.lookups == before + 1)
  }

  @Test func aRemovalByAnotherProcessIsPublishedByRemove() async throws {
    let stream = token.values
    try set("a")
    _ = try remove()
    try set(nil)
    try set("last")
    #expect(await collect(stream, until: "last") == [nil, "a", nil, "last"])
  }

  @Test func aValueThatCannotBeReadIsNilWithAnError() async throws {
    let number = SecurelyStoredValue<Int>(key: "token", service: "tests", backend: backend)
    var values = number.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    #expect(number.lastError == nil)
    try set("no number")
    #expect(await values.next() == .some(nil))
    #expect(number.lastError?.code == .decodingFailed)
    try set("7")
    #expect(await values.next() == .some(7))
    #expect(number.lastError == nil)
    backend.edit { $0.lookupError = SecretError(.unavailable, "The keyring stopped.") }
    backend.report(nil)
    #expect(await values.next() == .some(nil))
    #expect(number.lastError?.code == .unavailable)
  }

  @Test func lockingIsNoChangeAndShowsNoPrompt() async throws {
    try write("first")
    var values = token.values.makeAsyncIterator()
    #expect(await values.next() == .some("first"))
    backend.edit { $0.lookupError = SecretError(.locked, "The keyring is locked.") }
    for _ in 0..<3 { try await backend.reportAndWait(nil) }
    #expect(backend.lookups - backend.lookupsWithoutPrompts == 1, "only the first read may show a prompt")
    backend.edit { $0.lookupError = nil }
    try write("second")
    backend.report(nil)
    #expect(await values.next() == .some("second"), "a locked keyring is not an absent value")
  }

  @Test func cancellingTheReaderEndsTheStream() async throws {
    let token = token
    let task = Task {
      var count = 0
      for await _ in token.values { count += 1 }
      return count
    }
    try await eventually("the stream did not begin") { backend.watchers == 1 }
    task.cancel()
    #expect(await task.value <= 1)
  }

  @Test func changesArePublishedInTheOrderOfTheWrites() async throws {
    let stream = token.values
    let token = token
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<8 {
        group.addTask {
          for round in 0..<25 {
            await #expect(throws: Never.self) { try await token.set("\(writer).\(round)") }
          }
        }
      }
    }
    // The last published value is the last stored value.
    let last = try #require(try await token.backendText(backend))
    var values: [String] = []
    for await value in stream {
      if let value { values.append(value) }
      if values.count == 200 { break }
    }
    #expect(values.count == 200)
    #expect(Set(values).count == 200)
    #expect(values.last == last)
    for writer in 0..<8 {
      let rounds = values.filter { $0.hasPrefix("\(writer).") }
      #expect(rounds == (0..<25).map { "\(writer).\($0)" })
    }
  }
}

extension SecurelyStoredValue<String> {
  fileprivate func backendText(_ backend: ScriptedBackend) async throws -> String? { try await get() }
}
