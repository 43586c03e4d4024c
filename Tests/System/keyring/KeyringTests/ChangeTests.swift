#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Synchronization
import Testing

/// Changes by other programs, and what follows when the daemon or the bus is started again.
@Suite(.needsKeyring) struct ChangeTests {
  private let identifier: SecretIdentifier
  private let keyring: PrivateKeyring
  private let clients: Clients
  private let backend: KeyringBackend

  init() async throws {
    identifier = try SecretIdentifier(service: "svc", account: "alice")
    keyring = try await PrivateKeyring(.encrypted)
    clients = Clients(keyring: keyring)
    backend = keyring.backend()
  }

  @Test func changesByOtherProgramsAreReported() async throws {
    try clients.secretToolStore("existing", account: "bob")
    let changes = ChangeCollector(backend.changes())
    try clients.secretToolStore("1")
    try await changes.wait(for: SecretChange(identifier))
    try clients.secretToolStore("2")
    try await changes.wait(for: SecretChange(identifier))
    try clients.secretToolClear()
    try await changes.wait(for: SecretChange(identifier))
    // The identifier of an item that existed before the subscription is known too.
    try clients.secretToolClear(account: "bob")
    try await changes.wait(for: SecretChange(SecretIdentifier(service: "svc", account: "bob")))
    #expect(changes.drain().isEmpty, "nothing else was reported")
  }

  /// Such an item is updated without a new one, for which gnome-keyring sends no signal.
  @Test func anUpdateBesideAnotherItemIsReported() async throws {
    try clients.secretToolStore("theirs", attributes: ["target", "work"])
    try clients.createItem("ours", "old", ["service": "svc", "username": "alice"])
    let changes = ChangeCollector(backend.changes())
    try backend.store("new", identifier)
    try await changes.wait(for: SecretChange(identifier))
    #expect(try clients.items().first { $0.label == "ours" }?.value == "new")
  }

  @Test func aRestartedDaemonIsAChangeOfEverything() async throws {
    let changes = ChangeCollector(backend.changes())
    try await keyring.restartDaemon()
    try await changes.wait(for: SecretChange(nil))
    try clients.secretToolStore("1")
    try await changes.wait(for: SecretChange(identifier))
  }

  @Test func aRestartedBusIsAChangeOfEverything() async throws {
    let changes = ChangeCollector(backend.changes())
    try keyring.killBus()
    try await keyring.startBus()
    try await keyring.startDaemon()
    try await changes.wait(for: SecretChange(nil))
    var count = 0
    try await eventually("a store was not reported") {
      // The subscription may not be in force yet. Each value is new, so each store is a change.
      count += 1
      try clients.secretToolStore("\(count)")
      usleep(200_000)
      return changes.drain().contains(SecretChange(identifier))
    }
  }

  @Test func aStartedDaemonIsAChangeOfEverything() async throws {
    try await keyring.killDaemon()
    let changes = ChangeCollector(backend.changes())
    try await keyring.startDaemon()
    try await changes.wait(for: SecretChange(nil))
    try clients.secretToolStore("1")
    try await changes.wait(for: SecretChange(identifier))
  }
}

/// The changes of one stream, until it is released.
final class ChangeCollector: Sendable {
  private final class Log: Sendable { let changes = Mutex<[SecretChange]>([]) }
  private let log = Log()
  private let task: Task<Void, Never>

  init(_ stream: AsyncStream<SecretChange>) {
    task = Task { [log] in
      for await change in stream { log.changes.withLock { $0.append(change) } }
    }
  }

  deinit { task.cancel() }

  /// Removes all changes and returns them.
  func drain() -> [SecretChange] {
    log.changes.withLock { changes in
      defer { changes = [] }
      return changes
    }
  }

  /// Waits for `change`. Removes it and those before it.
  func wait(for change: SecretChange) async throws {
    try await eventually("\(change) was not reported") { drain().contains(change) }
  }
}
#endif
