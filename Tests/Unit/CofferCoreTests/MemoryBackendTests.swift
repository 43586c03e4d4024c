import CofferCore
import CofferTestSupport
import CofferTesting
import Foundation
import Synchronization
import Testing

@Suite struct MemoryBackendTests {
  private static let day = 86_400.0

  /// A clock that a test sets.
  private final class Clock: Sendable {
    private let time = Mutex(1_700_000_000.0)
    var now: Date { Date(timeIntervalSince1970: time.withLock { $0 }) }
    func advance(_ seconds: Double) { time.withLock { $0 += seconds } }
  }

  /// The values of the earlier versions of “a”, newest first.
  private func earlier(_ backend: MemoryBackend) throws -> [String?] {
    try backend.versions(of: identifier("a")).filter { $0.kind == .earlier }.map {
      try backend.secret(identifier("a"), version: $0.number)?.value.string()
    }
  }

  @Test func passesTheConformanceSuite() async throws {
    var options = SecretBackendConformance.Options()
    options.setHistoryVersions = {
      try ($0 as? MemoryBackend)?.setHistoryLimit(#require(HistoryLimit(versions: $1, days: 90)))
    }
    for repeatsTransactions in [false, true] {
      let report = try await SecretBackendConformance(options: options) {
        MemoryBackend(repeatsTransactions: repeatsTransactions)
      }.run()
      #expect(report.skipped.isEmpty)
      #expect(report.passed == SecretBackendConformance.checkNames)
    }
  }

  @Test func passesTheConformanceSuiteBesideOtherSecrets() async throws {
    let shared = MemoryBackend()
    let (other, gone) = try (identifier("other"), identifier("gone"))
    for text in ["earlier", "untouched"] { try shared.store(SecretBytes(text), for: other) }
    try shared.store(SecretBytes("removed"), for: gone)
    try shared.remove(gone)
    let (versions, removed) = try (shared.versions(of: other), shared.removedItems(inService: nil))
    #expect(versions.count == 2 && removed.map(\.identifier) == [gone])
    let report = try await SecretBackendConformance { shared }.run()
    #expect(report.skipped.allSatisfy { $0.contains("history-limit") } && report.skipped.count == 3)
    #expect(try shared.items(inService: nil).map(\.identifier) == [other])
    #expect(try shared.contains(other) && !shared.contains(gone))
    #expect(try shared.lookUp(other)?.string() == "untouched")
    #expect(try shared.versions(of: other) == versions && shared.removedItems(inService: nil) == removed)
  }

  @Test func keepsTenVersionsForNinetyDays() throws {
    let clock = Clock()
    let backend = MemoryBackend(now: { clock.now })
    #expect(try backend.historyLimit() == .standard)
    for value in 0..<13 { try backend.write("\(value)", "a") }
    #expect(try earlier(backend) == (2..<12).reversed().map { "\($0)" })
    clock.advance(90 * Self.day)
    #expect(try earlier(backend).count == 10)
    clock.advance(0.001)
    #expect(try earlier(backend).isEmpty && backend.text("a") == "12")
    #expect(try backend.versions(of: identifier("a")).map(\.kind) == [.current])
  }

  /// The age counts from the change that replaced or removed the value, not from when it was stored.
  @Test func theAgeOfAVersionCountsFromItsReplacement() throws {
    let clock = Clock()
    let backend = MemoryBackend(now: { clock.now })
    try backend.write("1", "a")
    clock.advance(200 * Self.day)
    try backend.write("2", "a")
    let replaced = clock.now
    clock.advance(80 * Self.day)
    try backend.remove(identifier("a"))
    #expect(try earlier(backend) == ["2", "1"])
    #expect(try backend.versions(of: identifier("a"))[1].date == replaced)
    clock.advance(20 * Self.day)
    #expect(try earlier(backend) == ["2"])
    clock.advance(71 * Self.day)
    #expect(try backend.versions(of: identifier("a")).isEmpty)
    #expect(try backend.removedItems(inService: nil).isEmpty && backend.restore(identifier("a")) == nil)
  }

  @Test func keepsNothingWithALimitOfNone() throws {
    let backend = MemoryBackend(history: .none)
    for text in ["1", "2"] { try backend.write(text, "a") }
    #expect(try earlier(backend).isEmpty && backend.text("a") == "2")
    try backend.remove(identifier("a"))
    #expect(try backend.versions(of: identifier("a")).isEmpty)
    // Not even a version that is not shown.
    #expect(try !backend.erase(identifier("a")))
    try backend.setHistoryLimit(.standard)
    #expect(try backend.versions(of: identifier("a")).isEmpty)
  }
}
