#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// The calls that each method makes on a service with 100 items. A call costs more than anything else that is done here.
///
/// The service has no encryption, so that a session takes two calls.
@Suite(.needsKeyring) struct CallCountTests {
  private let keyring: PrivateKeyring
  private let service: ScriptedService
  private let backend: KeyringBackend
  private let names: [SecretIdentifier]

  init() async throws {
    keyring = try await PrivateKeyring(startsDaemon: false)
    service = try await ScriptedService(keyring, "counted", "100")
    backend = keyring.backend()
    names = try (1...100).map { try SecretIdentifier(service: "svc", account: "name \($0)") }
  }

  /// Returns how often each method was called during `body`, apart from those of the start.
  private func calls(_ body: () throws -> Void) throws -> [String: Int] {
    let before = try service.calls().count
    try body()
    return try Dictionary(service.calls().dropFirst(before).map { ($0, 1) }, uniquingKeysWith: +)
  }

  @Test func namesNeedTheAttributesAlone() throws {
    let found = try calls { #expect(try backend.identifiers(inService: "svc").count == 100) }
    #expect(found == ["SearchItems": 1, "Get Attributes": 100])
    service.kill()
  }

  @Test func metadataNeedsOneCallForEachItemAndNoSession() throws {
    let list = try calls { #expect(try backend.items(inService: "svc").count == 100) }
    #expect(list == ["SearchItems": 1, "GetAll": 100])
    let item = try calls { #expect(try backend.item(names[0]) != nil) }
    #expect(item == ["SearchItems": 2, "GetAll": 1])
    let changes = try calls { _ = backend.changes() }
    #expect(changes == ["SearchItems": 1, "Get Attributes": 100])
    service.kill()
  }

  @Test func aValueNeedsOneSessionAndOneCall() throws {
    let first = try calls { #expect(try backend.text(names[0]) == "s3cret") }
    #expect(first == ["SearchItems": 2, "OpenSession": 2, "GetSecret": 1])
    let second = try calls { #expect(try backend.text(names[1]) == "s3cret") }
    #expect(second == ["SearchItems": 2, "GetSecret": 1])
    service.kill()
  }

  @Test func manyValuesNeedOneCallForSixtyFour() throws {
    let many = try calls { #expect(try backend.lookUp(names).count == 100) }
    #expect(many == ["SearchItems": 1, "Get Attributes": 100, "OpenSession": 2, "GetSecrets": 2])
    let few = try calls { #expect(try backend.lookUp(Array(names.prefix(3))).count == 3) }
    #expect(few == ["SearchItems": 6, "GetSecret": 3])
    service.kill()
  }

  @Test func theCollectionIsAskedForOnce() throws {
    let absent = try SecretIdentifier(service: "other", account: "name")
    let missing = try calls { #expect(try backend.text(absent) == nil) }
    #expect(missing == ["SearchItems": 2, "ReadAlias": 1, "Get Locked": 1])
    let new = try calls { try backend.store("new", absent) }
    #expect(
      new == ["SearchItems": 4, "ReadAlias": 1, "Get Locked": 1, "OpenSession": 2, "CreateItem": 1])
    let existing = try calls { try backend.store("new", names[0]) }
    #expect(existing == ["SearchItems": 4, "GetAll": 1, "CreateItem": 1])
    service.kill()
  }
}
#endif
