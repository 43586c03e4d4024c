#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// How many calls each method may make on a service with 100 items, and which it must not make. A call costs more than
/// anything else that is done here.
///
/// The service has no encryption, so that a session takes two calls.
@Suite(.needsKeyring) struct CallCountTests {
  private let keyring: PrivateKeyring
  private let backend: KeyringBackend
  private let names: [SecretIdentifier]

  init() async throws {
    keyring = try await PrivateKeyring(scripted: "counted", "100")
    backend = keyring.backend()
    names = try (1...100).map { try SecretIdentifier(service: "svc", account: "name \($0)") }
  }

  private func expect(
    atMost limit: Int, without methods: [String], sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Void
  ) throws {
    let before = try keyring.calls().count
    try body()
    let calls = try keyring.calls().dropFirst(before)
    let isRight = calls.count <= limit && !calls.contains(where: methods.contains)
    #expect(isRight, "\(calls)", sourceLocation: sourceLocation)
  }

  @Test func noMethodMakesUnnecessaryCalls() throws {
    let (attributes, metadata) = (["Get Attributes"], ["GetAll"])
    let values = ["OpenSession", "GetSecret", "GetSecrets"]
    try expect(atMost: 105, without: attributes + values) { () throws in
      #expect(try backend.items(inService: "svc").count == 100)
    }
    try expect(atMost: 5, without: values) { () throws in
      #expect(try backend.item(names[0])?.identifier == names[0])
    }
    let others = attributes + metadata
    try expect(atMost: 6, without: others) { () throws in #expect(try backend.text(names[0]) == "s3cret") }
    try expect(atMost: 4, without: others) { () throws in #expect(try backend.text(names[1]) == "s3cret") }
    try expect(atMost: 108, without: attributes + ["GetSecret"]) { () throws in
      #expect(try backend.secrets(inService: "svc").count == 100)
    }
    try expect(atMost: 5, without: attributes) { () throws in
      #expect(try backend.secret(names[0])?.value.string() == "s3cret")
    }
    let absent = try SecretIdentifier(service: "other", account: "name")
    try expect(atMost: 6, without: others) { () throws in #expect(try backend.text(absent) == nil) }
    try expect(atMost: 10, without: ["OpenSession"]) { try backend.store("new", absent) }
    try expect(atMost: 8, without: ["OpenSession", "ReadAlias"]) { try backend.store("new", names[0]) }
    try expect(atMost: 106, without: metadata + values) { _ = backend.changes() }
  }

  /// gnome-keyring answers one property at a time.
  @Test func noPropertyIsReadTwiceOrInVain() async throws {
    let keyring = try await PrivateKeyring(scripted: "doubled", "40")
    let backend = keyring.backend()
    func read(_ body: () throws -> Int) throws -> Set<String> {
      let before = try keyring.calls().count
      let found = try body()
      let counts = Dictionary(try keyring.calls().dropFirst(before).map { ($0, 1) }, uniquingKeysWith: +)
      let gets = counts.filter { $0.key.hasPrefix("Get ") }
      #expect(found >= 20 && gets.values.allSatisfy { $0 <= 40 }, "\(counts)")
      return Set(gets.keys.map { String($0.dropFirst(4)) })
    }
    let duplicates: Set = ["Attributes", "Label", "Modified"]
    let values = try read { try backend.secrets(inService: "svc").count }
    #expect(values == duplicates.union(["Created"]))
    let unlisted = try read { try backend.unlistedItems(inService: "svc").count + 20 }
    #expect(unlisted == duplicates)
    let items = try read { try backend.items(inService: "svc").count }
    #expect(items == duplicates.union(["Created"]))
  }
}
#endif
