internal import Coffer
internal import CofferConfiguration
internal import CofferCore
internal import CofferVault
internal import Foundation

/// Uses the library while other processes do the same.
struct LibraryScenario: Sendable {
  private let backend: VaultBackend

  init(vault: String) {
    var options = VaultOptions()
    options.lockTimeout = .seconds(60)
    backend = BackendConfiguration.current().vault(at: vault, options: options)
  }

  /// Refreshes a rotating token: each refresh needs the token of the one before.
  func refresh(_ count: Int) async throws {
    let token = SecurelyStoredValue<Int>(key: "token", service: "probe", backend: backend)
    for _ in 0..<count {
      _ = try await token.refreshed(timeout: .seconds(60), unless: { _ in false }) { old in
        await Task.yield()
        return (old ?? 0) + 1
      }
    }
  }

  /// Runs a chain of changes, and forgets to run another one.
  static func chains() async throws {
    let store = try await Store<Item>(storage: SecretScope(service: "items", backend: MemoryBackend()))
    try await store.removeAll().insert(Item(id: "run")).run()
    _ = await store.insert([Item(id: "forgotten")]).remove(Item(id: "run"))
    Probe.write("\(store.items.map(\.id))\n")
  }

  struct Item: Codable, Sendable, Equatable, Identifiable {
    var id: String
    var sent = Date().timeIntervalSince1970
  }

  /// Inserts items one by one, and waits until the store contains those of the other processes too. Prints the ids in
  /// their order, and then the longest time that an item of another process took to appear.
  func insertItems(_ prefix: String, _ count: Int, total: Int) async throws {
    let store = try await Store<Item>(storage: SecretScope(service: "items", backend: backend))
    let events = store.events
    let longest = Task {
      var longest = 0.0
      for await event in events where event.operation == .insert {
        let now = Date().timeIntervalSince1970
        for item in event.items where !item.id.hasPrefix(prefix) { longest = max(longest, now - item.sent) }
        if store.items.count == total { break }
      }
      return longest
    }
    for number in 0..<count { try await store.insert(Item(id: "\(prefix)\(number)")) }
    let end = ContinuousClock.now + .seconds(300)
    while store.items.count < total, ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(10))
    }
    if store.items.count < total { longest.cancel() }
    Probe.write(store.items.map(\.id).joined(separator: " ") + "\n")
    Probe.write("longest \(await longest.value)\n")
  }
}
