#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Testing

/// Several items in a service that returns the oldest one first, and replaces the oldest one that has all of the given
/// attributes, whatever others it has.
@Suite(.needsKeyring) struct OldestFirstTests {
  private let identifier: SecretIdentifier
  private let clients: Clients
  private let backend: KeyringBackend

  init() async throws {
    identifier = try SecretIdentifier(service: "svc", account: "alice")
    clients = Clients(keyring: try await PrivateKeyring(storingWith: "refuses-refused"))
    backend = clients.keyring.backend()
  }

  private func create(_ label: String, _ value: String, _ attributes: [String: String]) throws {
    try clients.createItem(label, value, attributes.merging(["service": "svc"]) { $1 })
  }

  private func values() throws -> Set<String> { Set(try clients.items().map { "\($0.label): \($0.value)" }) }

  @Test func anUpdateReplacesNoItemWithMoreAttributes() async throws {
    try create("theirs", "t", ["username": "alice", "target": "work"])
    try create("ours", "old", ["username": "alice"])
    try backend.store("new", identifier)
    #expect(try values() == ["theirs: t", "ours: new"])
  }

  @Test func anUpdateOfAnItemWithoutAUserNameReplacesNoItemWithOne() async throws {
    try create("theirs", "t", ["username": "carol", "account": "alice"])
    try create("ours", "old", ["account": "alice"])
    try backend.store("new", identifier)
    #expect(try values() == ["theirs: t", "ours: new"])
  }

  @Test func manyValuesAreThoseOfTheNewestItems() async throws {
    let names = try (0..<8).map { try SecretIdentifier(service: "svc", account: "name \($0)") }
    for name in names { try backend.store("first", name) }
    try await waitForNextSecond()
    try create("theirs", "newest", ["username": "name 0", "target": "work"])
    let texts = try backend.secrets(inService: "svc").map { try $0.value.string() }
    #expect(texts == ["newest"] + Array(repeating: "first", count: 7))
  }

  @Test func aStoreThatFailsDeletesNothingAndDoesNotQuoteTheValue() async throws {
    try create("one", "old", ["username": "alice"])
    try create("two", "old", ["username": "alice", "application": "mutt"])
    let error = thrown { () throws(SecretError) in try backend.store("refused", identifier) }
    #expect(error?.code == .io && error.map { !"\($0)".contains("refused") } == true)
    #expect(try values() == ["one: old", "two: old"])
  }
}
#endif
