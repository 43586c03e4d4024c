#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

extension KeyringTests {
  @Suite(.serialized) struct Sharing {
    let identifier: SecretIdentifier
    let keyring: PrivateKeyring
    let backend: KeyringBackend

    init() throws {
      identifier = try SecretIdentifier(service: "svc", account: "alice")
      keyring = try PrivateKeyring(.encrypted)
      backend = keyring.backend()
    }

    @Test func secretToolAndThisShareASecret() throws {
      try secretTool(store: "theirs")
      #expect(try backend.text(identifier) == "theirs")
      #expect(try backend.item(identifier)?.metadata.label == "From secret-tool")
      try backend.store("ours", identifier)
      #expect(try secretToolLookup() == "ours")
      #expect(
        try backend.item(identifier)?.metadata.label == "From secret-tool",
        "an update keeps the label"
      )
      #expect(try itemCount() == 1)
      #expect(try backend.remove(identifier))
      #expect(try itemCount() == 0)
      try backend.store("first ours", identifier)
      #expect(try secretToolLookup() == "first ours")
      try secretTool(store: "then theirs")
      #expect(try itemCount() == 1)
      #expect(try backend.text(identifier) == "then theirs")
      try keyring.run(
        "secret-tool",
        ["clear", "service", "svc", "username", "alice"],
        package: "libsecret-tools"
      )
      #expect(try backend.text(identifier) == nil)
    }

    @Test func pythonKeyringAndThisShareASecret() throws {
      try python("set", input: "theirs")
      #expect(try backend.text(identifier) == "theirs")
      #expect(
        try backend.item(identifier)?.metadata.attributes == ["application": "Python keyring library"]
      )
      try backend.store("ours", identifier)
      #expect(try python("get") == "ours")
      #expect(try itemCount() == 1)
      try python("set", input: "theirs again")
      #expect(try itemCount() == 1)
      #expect(try backend.text(identifier) == "theirs again")
      #expect(try backend.remove(identifier))
      #expect(try itemCount() == 0)
      try backend.store("first ours", identifier)
      #expect(try python("get") == "first ours")
    }

    @Test func tenUpdatesByTurnsLeaveOneItem() throws {
      for round in 0..<10 {
        switch round % 3 {
        case 0: try secretTool(store: "value \(round)")
        case 1: try backend.store("value \(round)", identifier)
        default: try python("set", input: "value \(round)")
        }
        // The service's times are in seconds: without this a tie would decide by the order of creation.
        usleep(1_100_000)
        #expect(try backend.text(identifier) == "value \(round)")
      }
      try backend.store("last", identifier)
      #expect(try itemCount() == 1)
      #expect(try secretToolLookup() == "last")
      #expect(try python("get") == "last")
      #expect(try backend.items(inService: "svc").count == 1)
    }

    @Test func anItemWithAFurtherAttributeOfMeaningIsLeftAlone() throws {
      try secretTool(store: "particular", more: ["target", "somewhere"])
      usleep(1_100_000)
      try secretTool(store: "general", more: ["application", "another"])
      #expect(try backend.text(identifier) == "general", "the one that was modified last is read")
      usleep(1_100_000)
      try secretTool(store: "particular", more: ["target", "somewhere"])
      #expect(try backend.text(identifier) == "particular", "even where it was created first")
      usleep(1_100_000)
      try secretTool(store: "general", more: ["application", "another"])
      try backend.store("ours", identifier)
      #expect(try itemCount() == 2)
      #expect(try backend.text(identifier) == "ours")
      #expect(try backend.items(inService: "svc").count == 1)
      #expect(try secretToolLookup(more: ["target", "somewhere"]) == "particular")
      #expect(try backend.remove(identifier))
      #expect(try itemCount() == 0)
    }

    @Test func changesOfOtherProcessesAreTold() async throws {
      try secretTool(store: "already there", account: "bob")
      let changes = ChangeCollector(backend.changes())
      try secretTool(store: "1")
      try changes.wait(for: SecretChange(identifier))
      try secretTool(store: "2")
      try changes.wait(for: SecretChange(identifier))
      try keyring.run(
        "secret-tool",
        ["clear", "service", "svc", "username", "alice"],
        package: "libsecret-tools"
      )
      try changes.wait(for: SecretChange(identifier))
      // An item that was there before anyone listened is known by name, too.
      try keyring.run(
        "secret-tool",
        ["clear", "service", "svc", "username", "bob"],
        package: "libsecret-tools"
      )
      try changes.wait(for: SecretChange(SecretIdentifier(service: "svc", account: "bob")))
      #expect(changes.take().isEmpty, "nothing else was told")
    }

    @Test func changesAreToldAfterTheDaemonWasRestarted() async throws {
      let changes = ChangeCollector(backend.changes())
      try keyring.restartDaemon()
      try changes.wait(for: SecretChange(nil))
      try secretTool(store: "1")
      try changes.wait(for: SecretChange(identifier))
    }

    @Test func changesAreToldAfterTheBusWasRestarted() async throws {
      let changes = ChangeCollector(backend.changes())
      keyring.killBus()
      try keyring.restartBus()
      try keyring.startDaemon()
      try changes.wait(for: SecretChange(nil))
      try waitUntil("a store is not told of") {
        try secretTool(store: UUID().uuidString)
        usleep(200_000)
        return changes.take().contains(SecretChange(identifier))
      }
    }

    @Test func changesAreToldOnceTheServiceStarts() async throws {
      try keyring.killDaemon()
      let changes = ChangeCollector(backend.changes())
      try keyring.startDaemon()
      try changes.wait(for: SecretChange(nil))
      try secretTool(store: "1")
      try changes.wait(for: SecretChange(identifier))
    }

    // MARK: Tools

    private func secretTool(store text: String, account: String = "alice", more: [String] = []) throws {
      let result = try keyring.run(
        "secret-tool",
        ["store", "--label=From secret-tool", "service", "svc", "username", account] + more,
        package: "libsecret-tools",
        input: text
      )
      #expect(result.status == 0)
    }

    private func secretToolLookup(more: [String] = []) throws -> String {
      try keyring.run(
        "secret-tool",
        ["lookup", "service", "svc", "username", "alice"] + more,
        package: "libsecret-tools"
      ).output
    }

    private func itemCount() throws -> Int {
      try keyring.run("secret-tool", ["search", "--all", "service", "svc"], package: "libsecret-tools")
        .output.split(separator: "\n").filter { $0.hasPrefix("[/") }.count
    }

    @discardableResult
    private func python(_ operation: String, input: String = "") throws -> String {
      let test = ["-c", "import keyring, secretstorage"]
      guard
        let python = try ["/usr/bin/python3", "python3"].first(where: {
          try keyring.run($0, test, package: "python3").status == 0
        })
      else {
        throw TestFailure(
          "These tests need Python's keyring. Install the packages python3-keyring and python3-secretstorage."
        )
      }
      let result = try keyring.run(
        python,
        ["-m", "keyring", "-b", "keyring.backends.SecretService.Keyring", operation, "svc", "alice"],
        package: "python3",
        // One final line feed is dropped; keyring 23.9 drops everything where there is none.
        input: input.isEmpty ? "" : input + "\n"
      )
      #expect(result.status == 0)
      return String(result.output.trimmingSuffix { $0 == "\n" })
    }
  }
}

/// What a stream of changes gave.
private final class ChangeCollector: @unchecked Sendable {  // behind the lock
  private let lock = NSLock()
  private var changes: [SecretChange] = []
  private var task: Task<Void, Never>?

  init(_ stream: AsyncStream<SecretChange>) {
    task = Task { [weak self] in
      for await change in stream { self?.add(change) }
    }
  }

  deinit { task?.cancel() }

  private func add(_ change: SecretChange) { lock.withLock { changes.append(change) } }

  func take() -> [SecretChange] {
    lock.withLock {
      defer { changes = [] }
      return changes
    }
  }

  /// Waits for `change`, and forgets it and what came before.
  func wait(for change: SecretChange) throws {
    try waitUntil("\(change) was not told") { take().contains(change) }
  }
}

extension String {
  fileprivate func trimmingSuffix(_ isTrimmed: (Character) -> Bool) -> Substring {
    var result = self[...]
    while let last = result.last, isTrimmed(last) { result.removeLast() }
    return result
  }
}
#endif
