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

  /// Returns how often each method was called during `body`, and what `body` returned.
  private func calls<R>(_ body: () throws -> R) throws -> (counts: [String: Int], result: R) {
    let before = try service.calls().count
    let result = try body()
    let calls = try service.calls().dropFirst(before)
    return (Dictionary(calls.map { ($0, 1) }, uniquingKeysWith: +), result)
  }

  @Test func namesNeedTheAttributesAlone() throws {
    let (counts, found) = try calls { try backend.identifiers(inService: "svc") }
    #expect(found.count == 100)
    #expect(counts == ["SearchItems": 1, "Get Attributes": 100])
    service.kill()
  }

  @Test func metadataNeedsOneCallForEachItemAndNoSession() throws {
    let list = try calls { try backend.items(inService: "svc").count }
    #expect(list.result == 100)
    #expect(list.counts == ["SearchItems": 1, "GetAll": 100])
    let item = try calls { try backend.item(names[0])?.identifier }
    #expect(item.result == names[0])
    #expect(item.counts == ["SearchItems": 2, "GetAll": 1])
    let watch = try calls { backend.changes() }
    #expect(
      watch.counts == ["Get Collections": 1, "Get Locked": 1, "SearchItems": 1, "Get Attributes": 100])
    service.kill()
  }

  @Test func aValueNeedsOneSessionAndOneCall() throws {
    let first = try calls { try backend.text(names[0]) }
    #expect(first.result == "s3cret")
    #expect(first.counts == ["SearchItems": 2, "OpenSession": 2, "GetSecret": 1])
    let second = try calls { try backend.text(names[1]) }
    #expect(second.counts == ["SearchItems": 2, "GetSecret": 1])
    service.kill()
  }

  @Test func manyValuesNeedOneCallForSixtyFour() throws {
    let many = try calls { try backend.lookUp(names).count }
    #expect(many.result == 100)
    #expect(
      many.counts == ["SearchItems": 1, "Get Attributes": 100, "OpenSession": 2, "GetSecrets": 2])
    let few = try calls { try backend.lookUp(Array(names.prefix(3))).count }
    #expect(few.result == 3)
    #expect(few.counts == ["SearchItems": 6, "GetSecret": 3])
    service.kill()
  }

  @Test func theCollectionIsAskedForOnce() throws {
    let absent = try SecretIdentifier(service: "other", account: "name")
    let missing = try calls { try backend.text(absent) }
    #expect(missing.result == nil)
    let session = "OpenSession"  // begun by the read, which does not wait for it
    #expect(
      missing.counts.filter { $0.key != session } == ["SearchItems": 2, "ReadAlias": 1, "Get Locked": 1])
    let new = try calls { try backend.store("new", absent) }
    #expect(
      new.counts.filter { $0.key != session } == [
        "SearchItems": 4, "ReadAlias": 1, "Get Locked": 1, "CreateItem": 1,
      ])
    let sessions = (missing.counts[session] ?? 0) + (new.counts[session] ?? 0)
    #expect(sessions == 2)
    let existing = try calls { try backend.store("new", names[0]) }
    #expect(existing.counts == ["SearchItems": 4, "GetAll": 1, "CreateItem": 1])
    service.kill()
  }
}
#endif
