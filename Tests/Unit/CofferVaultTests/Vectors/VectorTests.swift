import CofferVaultFormat
import CofferCore
import CofferTestSupport
@testable import CofferVault
import Foundation
import Testing

/// The vectors of `Tests/Vectors`: vaults, most of them damaged, and the outcome that each reader must have.
@Suite struct VectorTests {
  @Test func everyVectorHasItsOutcome() throws {
    let vectors = try Vector.all()
    #expect(vectors.count >= 1000)
    let scratch = try TemporaryDirectory()
    for vector in vectors {
      do { try vector.check(in: scratch) } catch {
        Issue.record("\(vector.name) (\(vector.comment)): \(error)")
      }
    }
    print("vectors: \(vectors.count)")
  }

  /// The number of former master keys and the former key slots, which only an open vault shows.
  @Test func everyRootHasItsLineageAndItsFormerSlots() throws {
    let scratch = try TemporaryDirectory()
    let path = scratch.file("vector")
    for vector in try Vector.all() where vector.expect.items != nil && vector.edits == nil {
      try Data(vector.bytes()).write(to: URL(filePath: path))
      #expect(chmod(path, 0o600) == 0)
      let file = try VaultFile(LocalMedium(path: path, environment: VaultEnvironment()).open())
      let chain = CredentialChain(
        [VaultCredentialSource(vector.credential)], options: vector.options, environment: VaultEnvironment())
      let settings = try VaultSnapshot(file, keys: chain.unlock(file)).base.settings
      let length = settings.lineage.map { ($0.count - Layout.sealOverhead) / 32 } ?? 0
      #expect(length == vector.expect.lineage ?? 0, "\(vector.name)")
      let slots = vector.expect.formerSlots ?? []
      #expect(settings.formerSlots.count == slots.count, "\(vector.name)")
      for (found, expected) in zip(settings.formerSlots, slots) {
        let (recipient, mark) = (try Hex.bytes(expected.recipient), expected.isTrace == 1)
        #expect(found.id.hex == expected.slotId && found.type == expected.type, "\(vector.name)")
        #expect(found.recipient == recipient && found.isTrace == mark, "\(vector.name)")
        #expect(found.created == expected.created && found.label == expected.label, "\(vector.name)")
        #expect(
          found.sequence == expected.removed && found.removed == expected.removedTime, "\(vector.name)")
      }
    }
  }

  @Test func everyPageOfLeasesIsReadAndKept() throws {
    let scratch = try TemporaryDirectory()
    let path = scratch.file("vector")
    let vectors = try Vector.all().filter { $0.expect.leases != nil }
    #expect(vectors.count >= 7)
    for vector in vectors {
      try Data(vector.bytes()).write(to: URL(filePath: path))
      #expect(chmod(path, 0o600) == 0)
      func leases() throws -> LeasePage {
        let file = try VaultFile(LocalMedium(path: path, environment: VaultEnvironment()).open())
        let chain = CredentialChain(
          [VaultCredentialSource(vector.credential)], options: vector.options, environment: VaultEnvironment())
        return try VaultSnapshot(file, keys: chain.unlock(file)).leases()
      }
      let expected = try #require(vector.expect.leases)
      let backend = VaultBackend(path: path, credentials: [VaultCredentialSource(vector.credential)])
      for (added, change) in [
        (0, { _ in }), (0, { try $0.set("a", [1]) }), (1, { try $0.compact() }), (2, { try $0.compact() }),
      ] as [(Int, (VaultBackend) throws -> Void)] {
        if expected.counter + added >= Layout.numberLimit {
          #expect(throws: SecretError.self) { try change(backend) }
          continue
        }
        try change(backend)
        let page = try leases()
        let held = page.leases.sorted { $0.key < $1.key }
          .map { Vector.Leases.Lease(lookupId: $0.hex, taking: $1.taking.hex, end: $1.end) }
        #expect(page.counter == expected.counter + added && held == expected.held, "\(vector.name)")
        #expect(throws: Never.self) { try backend.verify() }
      }
    }
  }

  /// The vaults that a release wrote stay readable and writable in every later version.
  @Test(arguments: ["format-1"])
  func vaultsOfAReleaseStayReadableAndWritable(_ format: String) throws {
    let folder = Vector.directory.appending(path: format)
    let vectors = try Vector.all(in: folder)
    #expect(vectors.count >= 3)
    for vector in vectors {
      let scratch = try TemporaryDirectory()
      let path = try vector.check(from: folder, in: scratch)
      let now = try Timestamp.date(#require(vector.now))
      // A rekey needs the credential of every slot.
      let credentials = vectors.filter { $0.vault == vector.vault }.map {
        VaultCredentialSource($0.credential)
      }
      let environment = VaultEnvironment(now: { now })
      let backend = VaultBackend(
        path: path, credentials: credentials, options: VaultOptions(), environment: environment)
      if vector.credential.identity != nil { try backend.trust() }
      let before = try backend.verify()
      try backend.set("from now", [1])
      try backend.compact()
      for name in vector.expect.removed ?? [] {
        #expect(try backend.restore(SecretIdentifier(service: name.service, account: name.account)) != nil)
      }
      try backend.rekey()
      try backend.set("from now", [2])
      let again = VaultBackend(
        path: path, credentials: [VaultCredentialSource(vector.credential)], options: VaultOptions(),
        environment: environment)
      if vector.credential.identity != nil { try again.trust() }
      #expect(try again.get("from now") == [2])
      let after = try again.verify()
      let restored = vector.expect.removed?.count ?? 0
      #expect(after.secretCount == before.secretCount + 1 + restored, "\(vector.name)")
      #expect(after.earlierVersionCount == before.earlierVersionCount + 1, "\(vector.name)")
      try vector.checkValues(in: again)
    }
  }

  struct KeyTextVector: Decodable {
    struct Expectation: Decodable {
      let outcome: String
      let key: String?
    }
    let name: String
    let text: String
    let expect: Expectation
  }

  @Test func everyKeyTextHasItsOutcome() throws {
    let vectors = try JSONDecoder().decode(
      [KeyTextVector].self, from: Data(contentsOf: Vector.directory.appending(path: "key_text.json")))
    #expect(vectors.count >= 10)
    for vector in vectors {
      let expected = try Hex.bytes(vector.expect.key ?? "")
      do throws(SecretError) {
        let key = try VaultKey.parse(SecretBytes(vector.text))
        #expect(vector.expect.outcome == "ok", "\(vector.name)")
        #expect(key.array() == expected, "\(vector.name)")
      } catch {
        #expect(error.code == .invalidKey && vector.expect.outcome == "invalid-key", "\(vector.name)")
      }
    }
  }

  struct IdentityVector: Decodable {
    struct Expectation: Decodable {
      let outcome: String
      let identity: String?
      let recipient: String?
    }
    let name: String
    let text: String
    let expect: Expectation
  }

  @Test func everyTextOfAnIdentityHasItsOutcome() throws {
    let vectors = try JSONDecoder().decode(
      [IdentityVector].self, from: Data(contentsOf: Vector.directory.appending(path: "identities.json")))
    #expect(vectors.count >= 10)
    for vector in vectors {
      let expected = try Hex.bytes(vector.expect.identity ?? "")
      do throws(SecretError) {
        let identities = try VaultIdentity.parse(SecretBytes(vector.text))
        #expect(vector.expect.outcome == "ok" && identities.count == 1, "\(vector.name)")
        let recipient = try VaultRecipient(vector.expect.recipient ?? "")
        #expect(recipient.description == vector.expect.recipient, "\(vector.name)")
        if let found = identities[0].recipient { #expect(found == recipient, "\(vector.name)") }
        #expect(identities[0].secret.array() == expected, "\(vector.name)")
      } catch {
        #expect(error.code == .invalidKey && vector.expect.outcome == "invalid-key", "\(vector.name)")
      }
    }
  }
}
