#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Testing

/// Secrets that other programs store and read.
@Suite(.needsKeyring) struct SharingTests {
  private let identifier: SecretIdentifier
  private let clients: Clients
  private let backend: KeyringBackend

  init() async throws {
    identifier = try SecretIdentifier(service: "svc", account: "alice")
    clients = Clients(keyring: try await PrivateKeyring(.encrypted))
    backend = clients.keyring.backend()
  }

  @Test func secretToolSharesSecrets() throws {
    try clients.secretToolStore("theirs")
    #expect(try backend.text(identifier) == "theirs")
    #expect(try backend.item(identifier)?.metadata.label == "From secret-tool")
    try backend.store("ours", identifier)
    #expect(try clients.secretToolLookup() == "ours")
    #expect(
      try backend.item(identifier)?.metadata.label == "From secret-tool", "an update keeps the label")
    #expect(try clients.itemCount() == 1)
    #expect(try backend.remove(identifier))
    #expect(try clients.itemCount() == 0)
    try backend.store("first ours", identifier)
    #expect(try clients.secretToolLookup() == "first ours")
    try clients.secretToolStore("then theirs")
    #expect(try clients.itemCount() == 1)
    #expect(try backend.text(identifier) == "then theirs")
    try clients.secretToolClear()
    #expect(try backend.text(identifier) == nil)
  }

  @Test func pythonKeyringSharesSecrets() throws {
    try clients.pythonSet("theirs")
    #expect(try backend.text(identifier) == "theirs")
    #expect(
      try backend.item(identifier)?.metadata.attributes == ["application": "Python keyring library"])
    try backend.store("ours", identifier)
    #expect(try clients.pythonGet() == "ours")
    #expect(try clients.itemCount() == 1)
    try clients.pythonSet("theirs again")
    #expect(try clients.itemCount() == 1)
    #expect(try backend.text(identifier) == "theirs again")
    #expect(try backend.remove(identifier))
    #expect(try clients.itemCount() == 0)
    try backend.store("first ours", identifier)
    #expect(try clients.pythonGet() == "first ours")
  }

  @Test(arguments: ["a\nb", "a\\b", " outer spaces "])
  func aValueThatAnEncryptedKeyringKeepsIsReadByOtherPrograms(_ text: String) async throws {
    try backend.store(text, identifier)
    #expect(try clients.secretToolLookup() == text)
    try await clients.keyring.restartDaemon()
    #expect(try backend.text(identifier) == text)
  }

  @Test func alternatingUpdatesOfThreeProgramsLeaveOneItem() async throws {
    for round in 0..<10 {
      switch round % 3 {
      case 0: try clients.secretToolStore("value \(round)")
      case 1: try backend.store("value \(round)", identifier)
      default: try clients.pythonSet("value \(round)")
      }
      try await waitForNextSecond()
      #expect(try backend.text(identifier) == "value \(round)")
    }
    try backend.store("last", identifier)
    #expect(try backend.text(identifier) == "last")
    #expect(try backend.items(inService: "svc").count == 1)
    #expect(try clients.itemCount() <= 2, "those of secret-tool and of Python's keyring differ in a program")
  }

  @Test func anItemWithAMeaningfulAttributeIsKept() async throws {
    let target = ["target", "somewhere"]
    try clients.secretToolStore("specific", attributes: target)
    try await waitForNextSecond()
    try clients.secretToolStore("general", attributes: ["application", "another"])
    #expect(try backend.text(identifier) == "general", "the item that was modified last is read")
    try await waitForNextSecond()
    try clients.secretToolStore("specific", attributes: target)
    #expect(try backend.text(identifier) == "specific", "even if it was created first")
    try await waitForNextSecond()
    try clients.secretToolStore("general", attributes: ["application", "another"])
    try backend.store("ours", identifier)
    #expect(try clients.itemCount() == 2)
    #expect(try backend.text(identifier) == "ours")
    #expect(try backend.items(inService: "svc").count == 1)
    #expect(try clients.secretToolLookup(attributes: target) == "specific")
    #expect(try backend.removeAll(identifier))
    #expect(try clients.itemCount() == 0)
  }
}
#endif
