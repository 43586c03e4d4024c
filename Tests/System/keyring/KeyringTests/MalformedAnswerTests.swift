#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// A service whose answer has another type than the protocol says: each is refused, and nothing is read as a value.
/// `Fixtures/malformed_service.py` documents the answers.
@Suite(.needsKeyring, .serialized) struct MalformedAnswerTests {
  enum Call: String, Sendable {
    case lookUp, store, storeMetadata, remove, list, listService
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let call: Call
    var state: String?
    let answer: String
    let signatures: [String]
    var collection: String?
    var code = SecretError.Code.io
    var testDescription: String { "\(call) \(state ?? "") \(answer)" }
  }

  static let cases = [
    Case(call: .lookUp, answer: "SearchItems", signatures: ["", "s", "ao", "asas", "aoas"]),
    Case(
      call: .lookUp, answer: "GetSecret",
      signatures: ["", "s", "oayays", "(oayay)", "(sayays)", "(oayayay)", "(oayss)", "(oaxays)"]),
    Case(call: .lookUp, state: "locked", answer: "Unlock", signatures: ["", "s", "ao", "aos"]),
    Case(
      call: .lookUp, state: "locked", answer: "Completed", signatures: ["", "b", "bs", "sv"], code: .timedOut),
    Case(call: .lookUp, state: "empty", answer: "ReadAlias", signatures: ["", "s", "b"]),
    Case(call: .lookUp, state: "empty", answer: "Get!", signatures: ["", "s", "b"]),
    Case(call: .lookUp, state: "locked", answer: "Get.Locked", signatures: ["s", "u"], collection: "only"),
    Case(call: .lookUp, answer: "Get.Collections", signatures: ["s", "as"], collection: "only"),
    Case(
      call: .lookUp, answer: "Get.Label", signatures: ["o", "b"], collection: "only", code: .configuration),
    Case(
      call: .lookUp, answer: "SearchItems.Collection", signatures: ["", "s", "as"], collection: "only"),
    Case(call: .store, state: "empty", answer: "CreateItem", signatures: ["", "o", "s", "os"]),
    Case(call: .store, state: "empty", answer: "Get.Locked", signatures: ["s", "u"]),
    Case(call: .storeMetadata, answer: "GetAll.Attributes", signatures: ["s", "a{si}", "a{sv}"]),
    Case(call: .remove, answer: "Delete", signatures: ["", "s", "b"]),
    Case(call: .list, answer: "GetAll!", signatures: ["", "s", "a{ss}"]),
    Case(call: .list, answer: "GetAll.Attributes", signatures: ["s", "a{si}", "a{is}", "a{sas}"]),
    Case(call: .list, state: "gnome", answer: "Get!", signatures: ["", "s", "a{ss}"]),
    Case(call: .list, state: "gnome", answer: "Get.Attributes", signatures: ["failed"]),
    Case(
      call: .list, state: "gnome", answer: "Get.Attributes", signatures: ["s", "a{si}", "a{is}", "a{sas}"]),
    Case(call: .list, answer: "SearchItems", signatures: ["many"]),
    Case(call: .list, state: "gnome", answer: "SearchItems", signatures: ["many"]),
    Case(call: .listService, answer: "SearchItems", signatures: ["", "ao", "asas"]),
  ]

  @Test(arguments: cases) func anAnswerOfAnotherTypeIsRefused(_ test: Case) async throws {
    for signature in test.signatures {
      let keyring = try await Self.keyring(test.state, test.answer, signature)
      let backend = keyring.backend {
        $0.mayPrompt = true
        $0.promptTimeout = .milliseconds(300)
        $0.collection = test.collection
      }
      let error = thrown { () throws(SecretError) in try Self.make(test.call, of: backend) }
      #expect(error?.code == test.code, "\(test.testDescription) \(signature)")
    }
  }

  /// libsecret reads an answer to `OpenSession` without a check of its type.
  @Test(arguments: ["plain", "string", "numbers", "nothing", "no-path", "long-key", "no-key"])
  func anAnswerToOpenSessionOfAnotherTypeIsRefused(_ answer: String) async throws {
    let keyring = try await PrivateKeyring(scripted: "hostile", "session-\(answer)")
    let backend = keyring.backend()
    for call in [Call.lookUp, .store] {
      let error = thrown { () throws(SecretError) in try Self.make(call, of: backend) }
      #expect(
        error?.code == .io && error?.reason.contains("protocol") == true, "\(String(describing: error))")
    }
  }

  @Test(arguments: [("search-huge", SecretError.Code.io), ("secret-huge", .tooLarge)])
  func anAnswerThatIsTooLargeIsRefused(_ answer: String, _ code: SecretError.Code) async throws {
    let keyring = try await PrivateKeyring(scripted: "hostile", answer)
    let error = thrown { () throws(SecretError) in try Self.make(.lookUp, of: keyring.backend()) }
    #expect(error?.code == code)
  }

  /// Without a wrong answer every call succeeds: the service is otherwise one that the tests above may trust.
  @Test(arguments: [nil, "locked", "empty", "gnome"]) func everyRightAnswerIsAccepted(_ state: String?)
    async throws
  {
    let keyring = try await Self.keyring(state, "nothing", "")
    let backend = keyring.backend { $0.mayPrompt = true }
    let identifier = try SecretIdentifier(service: "svc", account: "alice")
    let isEmpty = state == "empty"
    #expect(try backend.text(identifier) == (isEmpty ? nil : "s3cret"))
    let items = try backend.items(inService: nil)
    #expect(items.map(\.identifier) == (isEmpty ? [] : [identifier]))
    let second = Date(timeIntervalSince1970: 1)
    for metadata in items.map(\.metadata) {
      #expect(metadata.label == "only" && metadata.created == second && metadata.modified == second)
    }
    for call in [Call.store, .storeMetadata] { try Self.make(call, of: backend) }
    #expect(try backend.remove(identifier) == !isEmpty)
  }

  /// GLib leaves such a property out of an answer to `GetAll`.
  @Test func aPropertyThatGnomeKeyringCannotReadIsAbsent() async throws {
    for property in ["Label", "Created", "Modified"] {
      let keyring = try await Self.keyring("gnome", "Get.\(property)", "failed")
      let items = try keyring.backend().items(inService: "svc")
      #expect(items.count == 1)
      for metadata in items.map(\.metadata) {
        #expect((metadata.label == nil) == (property == "Label"))
        #expect((metadata.created == nil) == (property == "Created"))
        #expect((metadata.modified == nil) == (property == "Modified"))
      }
    }
  }

  /// gnome-keyring tells each property by a call of its own, and the item may be removed between two of them.
  @Test(arguments: ["Attributes", "Label", "Created", "Modified"])
  func anItemThatIsRemovedMeanwhileIsLeftOut(_ property: String) async throws {
    let keyring = try await Self.keyring("gnome", "Get.\(property)", "gone")
    let found = try keyring.backend().items(inService: "svc")
    #expect(found.isEmpty)
  }

  private static func keyring(
    _ state: String?, _ answer: String, _ signature: String
  ) async throws -> PrivateKeyring {
    let keyring = try await PrivateKeyring(startsDaemon: false)
    try await keyring.startService("malformed_service", (state.map { [$0] } ?? []) + [answer, signature])
    return keyring
  }

  private static func make(_ call: Call, of backend: KeyringBackend) throws(SecretError) {
    let identifier = try SecretIdentifier(service: "svc", account: "alice")
    switch call {
    case .lookUp: _ = try backend.lookUp(identifier)
    case .store: try backend.store("new", identifier)
    case .storeMetadata: try backend.store("new", identifier, SecretMetadata(label: "l"))
    case .remove: try backend.remove(identifier)
    case .list: _ = try backend.items(inService: nil)
    case .listService: _ = try backend.items(inService: "svc")
    }
  }
}
#endif
