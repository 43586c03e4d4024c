import Coffer
import CofferCore
import CofferTestSupport
import CofferTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(30))) struct StorageEngineTests {
  let backend = FailingBackend()
  let engine: any StorageEngine

  init() { engine = SecretStorageEngine(SecretScope(service: "engine", backend: backend)) }

  @Test func dataIsReadBackAsItWasWritten() async throws {
    for data in [Data(), Data([0, 10, 255]), Data(repeating: 7, count: 100_000)] {
      try await engine.write(data, key: "a")
      #expect(try await engine.read(key: "a") == data)
    }
    try await engine.write([("b", Data([1])), ("c", Data([2])), ("b", Data([3]))])
    #expect(try await engine.read(keys: ["c", "absent", "b"]).map(\.key) == ["c", "b"])
    #expect(try await engine.read(key: "b") == Data([3]))
    #expect(try await engine.readAllData().count == 3)
    #expect(try await engine.readAllDataAndKeys().map(\.key) == ["a", "b", "c"])
  }

  @Test func keysAreListedCountedAndDated() async throws {
    let before = Date(timeIntervalSinceNow: -1)
    for key in ["b", "a"] { try await engine.write(Data([1]), key: key) }
    #expect(try await engine.allKeys() == ["a", "b"])
    #expect(try await engine.keyCount() == 2)
    #expect(try await engine.keyExists("a"))
    #expect(try await !engine.keyExists("absent"))
    let created = try #require(try await engine.createdAt(key: "a"))
    #expect(created >= before)
    try await engine.write(Data([2]), key: "a")
    #expect(try await engine.createdAt(key: "a") == created)
    #expect(try #require(try await engine.updatedAt(key: "a")) >= created)
    #expect(try await engine.createdAt(key: "absent") == nil)
    #expect(try await engine.updatedAt(key: "absent") == nil)
  }

  @Test func removingAMissingKeyIsNoError() async throws {
    try await engine.remove(key: "absent")
    try await engine.write([("a", Data()), ("b", Data()), ("c", Data())])
    try await engine.remove(keys: ["a", "absent"])
    #expect(try await engine.allKeys() == ["b", "c"])
    try await engine.removeAllData()
    #expect(try await engine.allKeys() == [])
  }

  @Test func severalWritesAreOneStep() async throws {
    try await engine.write(Data([1]), key: "a")
    backend.fail(.commit, with: SecretError(.io, "The disk is full."))
    await #expect(throws: SecretError.self) { try await engine.write([("a", Data([2])), ("b", Data([2]))]) }
    backend.recover()
    await #expect(throws: SecretError.self) { try await engine.write([("c", Data()), ("", Data())]) }
    #expect(try await engine.read(key: "a") == Data([1]))
    #expect(try await engine.allKeys() == ["a"])
  }

  @Test func aReadThatFailsThrows() async throws {
    try await engine.write(Data([1]), key: "a")
    for call in [FailingBackend.Call.lookUp, .items] {
      backend.fail(call, with: SecretError(.locked, "The test says so."))
    }
    await #expect(throws: SecretError.self) { try await engine.read(key: "a") }
    await #expect(throws: SecretError.self) { try await engine.allKeys() }
    await #expect(throws: SecretError.self) { try await engine.keyExists("a") }
    await #expect(throws: SecretError.self) { try await engine.createdAt(key: "a") }
  }
}
