import Coffer
import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import Testing

/// What a `Store` costs in bytes and barriers of a simulated disk.
@Suite(.timeLimit(.minutes(30))) struct StoreCostTests {
  private struct Item: Codable, Sendable, Equatable, Identifiable { var id: Int }

  private let disk = SimulatedDisk()

  private func open() throws -> VaultBackend {
    let key = [UInt8](repeating: 7, count: 32)
    let environment = VaultEnvironment(fileSystem: disk, user: 0)
    if disk.names.isEmpty {
      try VaultBackend.create(
        on: LocalMedium(path: "vault", environment: environment), credential: .key(SecretBytes(key)),
        options: VaultOptions(), environment: environment)
    }
    let source = VaultCredentialSource("the test") { _ in .key(SecretBytes(key)) }
    return VaultBackend(
      path: "vault", credentials: [source], options: VaultOptions(), environment: environment)
  }

  private func store(_ service: String) async throws -> Store<Item> {
    try await Store(storage: SecretScope(service: service, backend: open()))
  }

  /// The bytes that ten inserts transfer.
  private func bytes(ofInsertsInto store: Store<Item>, from first: Int) async throws -> Int {
    let before = disk.transferred
    for id in first..<first + 10 { try await store.insert(Item(id: id)) }
    return disk.transferred - before
  }

  /// A cost for each item would make the bounds a hundred times too small.
  @Test func manyItemsAreOneCommitAndMoreCostAboutWhatTheyCostInAnEmptyStore() async throws {
    let empty = try await bytes(ofInsertsInto: store("empty"), from: 0)
    let full = try await store("full")
    let many = (0..<4000).map { Item(id: $0 &* 7919 % 4000) }
    let barriers = disk.barriers
    try await full.insert(many)
    #expect(disk.barriers - barriers < 10)
    let restarted = try await store("full")
    #expect(restarted.items == many)
    #expect(try await bytes(ofInsertsInto: restarted, from: 4000) < 10 * empty)
    #expect(restarted.items.count == 4010 && restarted.items.last?.id == 4009)
  }
}
