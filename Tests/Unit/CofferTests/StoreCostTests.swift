import Coffer
import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import Testing

/// What a `Store` costs in calls, bytes and barriers of a simulated disk.
@Suite(.long, .timeLimit(.minutes(30))) struct StoreCostTests {
  private struct Item: Codable, Sendable, Equatable, Identifiable { var id: Int }

  private let disk = SimulatedDisk()

  private func open() throws -> VaultBackend {
    let key = [UInt8](repeating: 7, count: 32)
    let environment = VaultEnvironment(fileSystem: disk, user: 0)
    if disk.names.isEmpty {
      try VaultBackend.create(
        at: "vault", credential: .key(SecretBytes(copying: key)), label: "", options: VaultOptions(),
        environment: environment)
    }
    let source = VaultCredentialClosure(name: "the test") { _ in .key(SecretBytes(copying: key)) }
    return VaultBackend(
      path: "vault", credentials: [source], options: VaultOptions(), environment: environment)
  }

  private func store(_ service: String) async throws -> Store<Item> {
    try await Store(storage: SecretScope(service: service, backend: open()))
  }

  /// Waits until the store has looked at its last change, so that the look is not counted with the next one.
  private func settle() async throws {
    for _ in 0..<200 {
      let calls = disk.calls
      try await Task.sleep(for: .milliseconds(5))
      if disk.calls == calls { return }
    }
  }

  /// The least that one insert into `store` costs. Now and then a periodic look at the vault adds its calls.
  private func costOfOneInsert(
    _ store: Store<Item>, from first: Int
  ) async throws -> (calls: Int, bytes: Int, barriers: Int) {
    var least = (calls: Int.max, bytes: Int.max, barriers: Int.max)
    for id in first..<first + 10 {
      try await settle()
      let before = (disk.calls, disk.transferred, disk.barriers)
      try await store.insert(Item(id: id))
      least.calls = min(least.calls, disk.calls - before.0)
      least.bytes = min(least.bytes, disk.transferred - before.1)
      least.barriers = min(least.barriers, disk.barriers - before.2)
    }
    return least
  }

  @Test func tenThousandItemsAreOneCommitAndOneMoreCostsWhatItCostsInAnEmptyStore() async throws {
    let empty = try await costOfOneInsert(store("empty"), from: 0)
    #expect(empty.barriers == 2)

    let full = try await store("full")
    let many = (0..<10_000).map { Item(id: $0 &* 7919 % 10_000) }
    let barriers = disk.barriers
    try await full.insert(many)
    #expect(disk.barriers - barriers <= 3, "a new file, its name, and perhaps the name of the old one")
    let restarted = try await store("full")
    #expect(restarted.items == many)

    let more = try await costOfOneInsert(restarted, from: 10_000)
    #expect(more == empty)
    #expect(restarted.items.count == 10_010 && restarted.items.last?.id == 10_009)
  }
}
