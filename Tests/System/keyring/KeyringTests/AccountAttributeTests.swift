#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// Items with `account` in place of `username`, as keytar, Visual Studio Code and JetBrains' programs store them.
@Suite(.needsKeyring) struct AccountAttributeTests {
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

  private func create(_ label: String, _ value: String, _ attributes: [String: String]) throws {
    try clients.createItem(label, value, attributes.merging(["service": "svc"]) { $1 })
  }

  @Test func theItemIsListedAndRead() throws {
    try create("theirs", "t", ["account": "alice"])
    #expect(try backend.text(identifier) == "t")
    #expect(try backend.items(inService: nil).map(\.identifier) == [identifier])
    let item = try #require(try backend.item(identifier) as SecretItem?)
    #expect(item.metadata.label == "theirs" && item.metadata.attributes.isEmpty)
    #expect(try backend.unlistedItems(inService: nil).isEmpty)
  }

  @Test func aStoreUpdatesItAndKeepsItsAttributes() throws {
    try create("theirs", "t", ["account": "alice"])
    // The service takes an item with more attributes for the same one, if it may replace.
    try create("somebody's", "s", ["account": "alice", "username": "carol"])
    try backend.store("new", identifier)
    let metadata = SecretMetadata(label: "changed", attributes: ["account": "1", "username": "2"])
    try backend.store(SecretBytes(Array("newer".utf8)), for: identifier, metadata: metadata)
    #expect(try backend.item(identifier)?.metadata.attributes == metadata.attributes)
    let items = try clients.items()
    #expect(items.count == 2)
    let item = try #require(items.first { $0.label == "changed" })
    #expect(item.value == "newer" && item.attributes["account"] == "alice")
    #expect(item.attributes["username"] == nil && item.attributes["service"] == "svc")
    #expect(items.first { $0.label == "somebody's" }?.value == "s")
  }

  @Test func aMoveKeepsTheForm() throws {
    try create("theirs", "t", ["account": "alice", "more": "1"])
    try backend.move(identifier, to: other, replacing: false)
    let items = try clients.items()
    #expect(items.map(\.value) == ["t"] && items.first?.attributes["account"] == "bob")
    #expect(items.first?.attributes["username"] == nil && items.first?.attributes["more"] == "1")
    #expect(try backend.remove(other))
    #expect(try clients.items().isEmpty)
  }

  @Test func besideAnItemWithAUserNameItIsADifferentSecret() async throws {
    try create("ours", "o", ["username": "alice"])
    try await waitForNextSecond()
    try create("theirs", "t", ["account": "alice"])
    #expect(try backend.text(identifier) == "t", "the newest is read")
    #expect(try backend.differentItems(identifier).count == 2)
    let error = thrown { () throws(SecretError) in try backend.remove(identifier) }
    #expect(error?.code == .ambiguous)
    #expect(
      try backend.unlistedItems(inService: "svc") == [UnlistedItem(title: "ours", identifier: identifier)])
    try backend.store("new", identifier)
    #expect(try Set(clients.items().map { "\($0.label) \($0.value)" }) == ["ours new", "theirs t"])
  }

  @Test func anItemWithAnotherUserNameIsNotMeant() throws {
    try create("somebody's", "s", ["account": "alice", "username": "bob"])
    #expect(try backend.text(identifier) == nil)
    #expect(try backend.text(other) == "s")
    #expect(try backend.item(other)?.metadata.attributes == ["account": "alice"])
    #expect(try !backend.remove(identifier))
    #expect(try clients.items().count == 1)
  }

  @Test func itemsWithoutANameAreUnlisted() throws {
    try create("no user name", "1", ["user": "alice"])
    try clients.createItem("no service", "2", ["username": "alice"])
    try create("listed", "3", ["username": "alice"])
    #expect(
      try backend.unlistedItems(inService: nil) == [
        UnlistedItem(title: "no service", identifier: nil),
        UnlistedItem(title: "no user name", identifier: nil),
      ])
    #expect(
      try backend.unlistedItems(inService: "svc") == [UnlistedItem(title: "no user name", identifier: nil)])
  }
}
#endif
