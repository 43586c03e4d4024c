import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferTesting
import CofferVault
import Foundation
import Synchronization
import Testing

@Suite struct ConformanceTests {
  @Test func theVaultPassesTheConformanceSuite() async throws {
    let vault = try TestVault()
    var options = SecretBackendConformance.Options()
    options.setHistoryVersions = {
      try ($0 as? VaultBackend)?.setHistoryLimit(#require(HistoryLimit(versions: $1, days: 90)))
    }
    let report = try await SecretBackendConformance(options: options) { vault.open() }.run()
    #expect(report.skipped.isEmpty)
    #expect(try vault.open().verify().secretCount == 0)
    #expect(try vault.open().verify().earlierVersionCount == 0)
  }

  /// Random changes while the clock advances and the history limit changes. The version numbers of the backends differ,
  /// because a rewrite of a vault takes a number too.
  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func theVaultAndTheMemoryBackendKeepTheSameHistory(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let time = Time()
    var environment = VaultEnvironment(now: { time.now })
    environment.compactionThreshold = 2000
    let file = try TestVault(environment: environment)
    let vault = file.open(environment: environment)
    let memory = MemoryBackend(now: { time.now })
    let backends: [any SecretBackend] = [vault, memory]
    let names = try ["a", "b", "c"].map { try identifier($0) }
    for step in 1...200 {
      let name = names[Int.random(in: 0..<3, using: &random)]
      let value = [UInt8](repeating: UInt8.random(in: 0...3, using: &random), count: step % 20)
      let label = Bool.random(using: &random) ? SecretMetadata(label: "\(step)") : nil
      let index = Int.random(in: 0..<4, using: &random)
      let limit = try #require(
        HistoryLimit(
          versions: Int.random(in: 0...5, using: &random), days: Int.random(in: 0...3, using: &random)))
      let change = Int.random(in: 0..<32, using: &random)
      let history =
        [History.unchanged, .unchanged, .unchanged, .kept, .none].randomElement(using: &random)
        ?? .unchanged
      let metadata = label.map { MetadataChange.replace($0) } ?? .keep
      time.advance(Int.random(in: 0...40_000, using: &random))
      for backend in backends {
        switch change {
        case 0:
          // The vault measures ages up to its last change, so a change is made right before the limit is set.
          try backend.store(SecretBytes(value), for: name, metadata: label)
          if backend === memory {
            try memory.setHistoryLimit(limit)
          } else {
            try vault.setHistoryLimit(limit)
          }
        case 1: try backend.storeWithoutHistory(SecretBytes(value), for: name, metadata: label)
        case 2: try backend.erase(name)
        case 3: try (backend as? VaultBackend)?.compact()
        case 4...6: try backend.restore(name)
        case 7...9:
          let earlier = try backend.versions(of: name).filter { $0.kind == .earlier }
          if earlier.indices.contains(index) { try backend.restore(name, version: earlier[index].number) }
        case 10...15: try backend.remove(name, history: history)
        case 16...18:
          try backend.withTransaction { transaction throws(SecretError) in
            try transaction.store(SecretBytes(value), for: name, metadata: label)
            if index > 0 { _ = try transaction.remove(name) }
            if index > 1 {
              try transaction.store(SecretBytes([9] as [UInt8]), for: name)
            }
          }
        default: try backend.store(SecretBytes(value), for: name, metadata: metadata, history: history)
        }
      }
      let (found, expected) = (try Content(vault, names), try Content(memory, names))
      #expect(found == expected, "step \(step), change \(change)")
      if found != expected { return }
    }
  }

  private final class Time: Sendable {
    private let seconds = Mutex(1_700_000_000)
    var now: Date { Date(timeIntervalSince1970: Double(seconds.withLock { $0 })) }
    func advance(_ count: Int) { seconds.withLock { $0 += count } }
  }

  /// The state of some secrets, as a backend shows it.
  private struct Content: Equatable {
    struct Version: Equatable {
      let kind: SecretVersion.Kind
      let date: Date
      let metadata: SecretMetadata
      let value: [UInt8]?
    }
    var versions: [[Version]] = []
    let items: [SecretItem]
    let removed: [RemovedSecret]

    init(_ backend: any SecretBackend, _ names: [SecretIdentifier]) throws {
      for name in names {
        versions.append(
          try backend.versions(of: name).map { version in
            Version(
              kind: version.kind, date: version.date, metadata: version.metadata,
              value: try backend.secret(name, version: version.number)?.value.array())
          })
      }
      items = try backend.items(inService: nil)
      removed = try backend.removedItems(inService: nil)
    }
  }
}
