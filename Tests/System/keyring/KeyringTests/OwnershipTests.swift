#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// What happens to items of other programs that have the same service and user name.
@Suite(.needsKeyring) struct OwnershipTests {
  private let identifier: SecretIdentifier
  private let other: SecretIdentifier
  private let clients: Clients
  private let backend: KeyringBackend

  init() async throws {
    identifier = try SecretIdentifier(service: "svc", account: "alice")
    other = try SecretIdentifier(service: "svc", account: "bob")
    clients = Clients(keyring: try await PrivateKeyring(.encrypted))
    backend = clients.keyring.backend()
  }

  private func create(_ label: String, _ value: String, _ attributes: [String: String] = [:]) throws {
    try clients.createItem(label, value, attributes.merging(["service": "svc", "username": "alice"]) { $1 })
  }

  private func code(_ body: () throws(SecretError) -> Void) -> SecretError.Code? { thrown(body)?.code }

  /// The values of all items, by label.
  private func values() throws -> [String: String] {
    Dictionary(try clients.items().map { ($0.label, $0.value) }, uniquingKeysWith: { "\($0), \($1)" })
  }

  @Test func severalDifferentItemsAreNotRemovedOrMovedUnlessAllAreMeant() throws {
    try create("Work", "w", ["target": "work"])
    try create("Home", "h", ["target": "home"])
    let before = try values()
    #expect(before == ["Work": "w", "Home": "h"])
    #expect(code { () throws(SecretError) in try backend.remove(identifier) } == .ambiguous)
    #expect(
      code { () throws(SecretError) in
        try backend.move(identifier, to: other, replacing: false)
      } == .ambiguous)
    #expect(try values() == before)
    #expect(try backend.differentItems(identifier).count == 2)

    try backend.moveAll(identifier, to: other, replacing: false)
    #expect(try values() == before)
    #expect(Set(try clients.items().map { $0.attributes["target"] }) == ["work", "home"])
    #expect(try backend.differentItems(identifier).isEmpty)
    #expect(try backend.removeAll(other))
    #expect(try clients.items().isEmpty)
  }

  @Test func aStoreChangesNoneOfSeveralDifferentItems() throws {
    try create("Work", "w", ["target": "work"])
    try create("Home", "ours", ["target": "home"])
    try backend.store("ours", identifier)
    #expect(try backend.text(identifier) == "ours")
    #expect(
      try values() == ["Work": "w", "Home": "ours", "Password for 'alice' on 'svc'": "ours"])
    // One of the others has the value that is overwritten.
    try backend.store("ours again", identifier)
    #expect(try backend.text(identifier) == "ours again")
    #expect(
      try values() == ["Work": "w", "Home": "ours", "Password for 'alice' on 'svc'": "ours again"])
  }

  @Test func aStoreDeletesNothingInAnotherCollection() async throws {
    let elsewhere = clients.keyring.backend { $0.collection = "session" }
    try elsewhere.store("old", identifier)
    try await waitForNextSecond()
    try create("read", "old")
    try backend.store("new", identifier)
    #expect(try values() == ["read": "new"])
    #expect(try elsewhere.text(identifier) == "old")
  }

  /// The items differ in their program or in their label.
  @Test(arguments: [true, false])
  func aDifferentItemIsDeletedOnlyIfItHasTheOverwrittenValue(isOfAnotherProgram: Bool) async throws {
    func program(_ name: String) -> [String: String] { isOfAnotherProgram ? ["application": name] : [:] }
    try create("kept", "k", program("mutt"))
    try create("outdated", "old", program("offlineimap"))
    try await waitForNextSecond()
    try create("read", "old")
    try backend.store("new", identifier)
    #expect(try values() == ["kept": "k", "read": "new"])
  }

  @Test func theSameSecretStoredTwiceIsOneAfterAStore() async throws {
    try create("l", "older", ["xdg:schema": "org.freedesktop.Secret.Generic"])
    try await waitForNextSecond()
    try create("l", "newer", ["target": "default"])
    #expect(try backend.differentItems(identifier).count == 1)
    try backend.store("new", identifier)
    #expect(try values() == ["l": "new"])
  }

  @Test func anUpdateKeepsTheAttributesOfOtherPrograms() throws {
    try create("theirs", "t", ["target": "work", "application": "vpn", "xdg:schema": "org.example"])
    let metadata = SecretMetadata(label: "ours", attributes: ["a": "1"])
    try backend.store(SecretBytes(Array("ours".utf8)), for: identifier, metadata: metadata)
    let item = try #require(try clients.items().first)
    #expect(item.attributes["target"] == "work" && item.attributes["application"] == "vpn")
    #expect(item.attributes["xdg:schema"] == "org.example" && item.attributes["a"] == "1")
    #expect(item.label == "ours" && item.value == "ours")
    #expect(try clients.items().count == 1)
  }

  /// The content types of the items in a scripted service, by account.
  private func contentTypes(_ keyring: PrivateKeyring) throws -> [String: String] {
    struct Item: Decodable {
      let attributes: [String: String]
      let type: String
    }
    let file = try Data(contentsOf: URL(fileURLWithPath: keyring.path("scripted.log")))
    let items = try JSONDecoder().decode([String: Item].self, from: file).values
    return Dictionary(items.map { ($0.attributes["username"] ?? "", $0.type) }) { "\($0), \($1)" }
  }

  @Test(arguments: ["keepassxc", "kwalletd5", "types-alice"])
  func theContentTypeIsKeptIfTheValueIsNotEncoded(_ provider: String) async throws {
    let keyring = try await PrivateKeyring(storingWith: "types-alice", provider)
    let backend = keyring.backend()
    for value in ["{}", "[1]"] {
      try backend.store(value, identifier)
      #expect(try contentTypes(keyring) == ["alice": "application/json"])
    }
    try backend.move(identifier, to: other, replacing: false)
    #expect(try contentTypes(keyring) == ["bob": "application/json"])
    try backend.store("a\0", other)
    #expect(try contentTypes(keyring) == ["bob": "text/plain"])
    #expect(try backend.text(other) == "a\0")
  }

  @Test func anUpdateInKWalletKeepsTheTimeOfCreation() async throws {
    let keyring = try await PrivateKeyring(storingWith: "kwalletd5")
    let backend = keyring.backend()
    try backend.store("old", identifier)
    let created = try #require(try backend.item(identifier)?.metadata.created)
    try await waitForNextSecond()
    try backend.store("new", identifier)
    #expect(try backend.text(identifier) == "new")
    #expect(try backend.item(identifier)?.metadata.created == created)
  }

  @Test func aMovedItemKeepsItsAttributesAndReplacesOnlyIfThatIsMeant() async throws {
    try create("theirs", "t", ["target": "work", "application": "vpn"])
    try backend.store("there", other)
    #expect(
      thrown { () throws(SecretError) in try backend.move(identifier, to: other, replacing: false) }?.code
        == .alreadyExists)
    #expect(try backend.text(other) == "there")
    let created = try #require(try backend.item(identifier)?.metadata.created)
    try await waitForNextSecond()
    try backend.move(identifier, to: other, replacing: true)
    let items = try clients.items()
    #expect(items.count == 1 && items.first?.value == "t" && items.first?.label == "theirs")
    #expect(items.first?.attributes["target"] == "work" && items.first?.attributes["username"] == "bob")
    #expect(try backend.item(other)?.metadata.created == created)
    #expect(
      thrown { () throws(SecretError) in try backend.move(identifier, to: other, replacing: true) }?.code == .missing)
  }

  @Test func aMoveReplacesNoneOfSeveralDifferentItemsUnlessAllAreMeant() throws {
    try create("moved", "m")
    try clients.createItem("Work", "w", ["service": "svc", "username": "bob", "target": "work"])
    try clients.createItem("Home", "h", ["service": "svc", "username": "bob", "target": "home"])
    let before = try values()
    #expect(
      code { () throws(SecretError) in
        try backend.move(identifier, to: other, replacing: true)
      } == .ambiguous)
    #expect(try values() == before)
    try backend.moveAll(identifier, to: other, replacing: true)
    #expect(try values() == ["moved": "m"])
  }

  @Test func aMoveToTheSameNameChangesNothing() throws {
    try create("theirs", "t", ["target": "work"])
    try backend.move(identifier, to: identifier, replacing: false)
    #expect(try values() == ["theirs": "t"])
  }

  @Test func theAttributesOfAnotherItemAreNotWritten() async throws {
    try create("Work", "w", ["target": "work", "purpose": "vpn"])
    try create("Home", "h", ["target": "home"])
    for value in ["new", "updated"] {
      // What a program does that changes only the label.
      var metadata = try #require(try backend.item(identifier)).metadata
      metadata.label = "Ours"
      metadata.attributes.merge(["target": "work", "own": "1"]) { $1 }
      try backend.store(SecretBytes(Array(value.utf8)), for: identifier, metadata: metadata)
      let ours = try #require(try clients.items().first { $0.label == "Ours" })
      #expect(ours.value == value && ours.attributes["own"] == "1")
      #expect(ours.attributes["target"] == nil && ours.attributes["purpose"] == nil)
      #expect(try clients.secretToolLookup(attributes: ["target", "work"]) == "w")
      try await waitForNextSecond()
      try clients.secretToolStore("w", attributes: ["target", "work", "purpose", "vpn"])
    }
  }

  @Test func whatWasReadOfAnotherItemIsNotWritten() async throws {
    let own = SecretMetadata(label: "Ours", attributes: ["own": "1"])
    try backend.store(SecretBytes(Array("old".utf8)), for: identifier, metadata: own)
    try await waitForNextSecond()
    try create("Work", "w", ["target": "work", "purpose": "vpn"])
    var metadata = try #require(try backend.item(identifier)).metadata
    #expect(metadata.label == "Work", "the newest item is read")
    metadata.attributes["more"] = "2"
    try backend.store(SecretBytes(Array("new".utf8)), for: identifier, metadata: metadata)
    let ours = try #require(try clients.items().first { $0.value == "new" })
    #expect(ours.label == "Ours")
    #expect(ours.attributes["own"] == "1" && ours.attributes["more"] == "2")
    #expect(ours.attributes["target"] == nil && ours.attributes["purpose"] == nil)
  }

  /// The lock between processes is a name on the bus.
  private func isLocked() throws -> Bool { try clients.keyring.hasOwner("coffer.KeyringStore") }

  @Test func theLockOfAStoreIsReleased() throws {
    try backend.store("x", identifier)
    #expect(try !isLocked())
  }

  @Test func aStoreWaitsForThatOfAnotherProcess() async throws {
    let script =
      "import dbus, time; dbus.SessionBus().request_name('coffer.KeyringStore', 4); time.sleep(600)"
    let other = try ChildProcess(
      [try InstalledPrograms.pythonWithDBus.get(), "-c", script], environment: clients.keyring.environment,
      endsWithTests: true)
    defer { other.kill() }
    try await eventually("the other process does not begin") { try isLocked() }
    let backend = clients.keyring.backend { $0.timeout = .seconds(300) }
    let store = Task { [identifier] in
      try await backend.perform { try $0.store(SecretBytes("x"), for: identifier) }
    }
    try await Task.sleep(for: .seconds(8))
    #expect(try backend.text(identifier) == nil)
    other.kill()
    try await store.value
    #expect(try backend.text(identifier) == "x")
  }

  @Test(arguments: [false, true])
  func concurrentStoresOfANewSecretWithDifferentMetadataLeaveOneItem(inOneProcess: Bool) async throws {
    for round in 0..<10 {
      let name = try SecretIdentifier(service: "svc", account: "round \(round)")
      try await withThrowingTaskGroup { group in
        for number in 0..<4 {
          // Each backend has a connection of its own, as another process has.
          let backend =
            inOneProcess ? backend : clients.keyring.backend { $0.timeout = .seconds(300) }
          group.addTask {
            let metadata = SecretMetadata(label: "label \(number)", attributes: ["number": "\(number)"])
            let value = SecretBytes("\(number)")
            try await backend.perform { try $0.store(value, for: name, metadata: metadata) }
          }
        }
        try await group.waitForAll()
      }
      #expect(try clients.items().filter { $0.attributes["username"] == name.account }.count == 1)
    }
  }
}
#endif
