#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// A move that fails leaves the original, and no copy. A move deletes no item that it has not copied or replaced.
@Suite(.needsKeyring) struct FailedMoveTests {
  private let alice: SecretIdentifier
  private let bob: SecretIdentifier

  init() throws {
    alice = try SecretIdentifier(service: "svc", account: "alice")
    bob = try SecretIdentifier(service: "svc", account: "bob")
  }

  private func moveFails(in backend: KeyringBackend) -> Bool {
    do throws(SecretError) {
      try backend.move(alice, to: bob, replacing: false)
      return false
    } catch {
      return error.code == .io
    }
  }

  @Test func aCopyThatHasAnotherValueIsDeleted() async throws {
    let keyring = try await PrivateKeyring(storingWith: "changes-new-values")
    let backend = keyring.backend { $0.timeout = .seconds(300) }
    try backend.store("value", alice)
    #expect(moveFails(in: backend))
    #expect(try backend.text(alice) == "value!" && backend.text(bob) == nil)
  }

  @Test func anItemThatAnotherProgramStoresDuringAMoveIsKept() async throws {
    let keyring = try await PrivateKeyring(storingWith: "stores-during-a-move")
    let backend = keyring.backend { $0.timeout = .seconds(300) }
    try backend.store("value", alice)
    try backend.move(alice, to: bob, replacing: false)
    #expect(try backend.text(alice) == "another program's" && backend.text(bob) == "value")
  }

  @Test func aMoveIsFinishedWithTheNextProcessOfTheService() async throws {
    let keyring = try await PrivateKeyring(storingWith: "ends-before-bob-is-deleted")
    let backend = keyring.backend { $0.timeout = .seconds(300) }
    try backend.store("value", alice)
    try backend.store("replaced", bob)
    try backend.move(alice, to: bob, replacing: true)
    #expect(try backend.text(alice) == nil && backend.text(bob) == "value")
    let items = try JSONSerialization.jsonObject(
      with: Data(contentsOf: URL(filePath: keyring.path("scripted.log"))))
    #expect((items as? [String: Any])?.count == 1)
  }

  @Test func theCopyOfAnOriginalThatCannotBeDeletedIsDeleted() async throws {
    let keyring = try await PrivateKeyring(storingWith: "keeps-alice")
    let backend = keyring.backend { $0.timeout = .seconds(300) }
    try backend.store("value", alice)
    #expect(moveFails(in: backend))
    #expect(try backend.text(alice) == "value" && backend.text(bob) == nil)
  }
}
#endif
