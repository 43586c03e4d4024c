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
  private let keyring: PrivateKeyring
  private let backend: KeyringBackend

  init() async throws {
    alice = try SecretIdentifier(service: "svc", account: "alice")
    bob = try SecretIdentifier(service: "svc", account: "bob")
    keyring = try await PrivateKeyring(startsDaemon: false)
    backend = keyring.backend { $0.operationTimeout = .seconds(300) }
  }

  private func moveFails() -> Bool {
    do throws(SecretError) {
      _ = try backend.move(alice, to: bob, replacing: false, all: false)
      return false
    } catch {
      return error.code == .io
    }
  }

  @Test func aCopyThatHasAnotherValueIsDeleted() async throws {
    let service = try await ScriptedService(keyring, storingWith: "changes-new-values")
    defer { service.kill() }
    try backend.store("value", alice)
    #expect(moveFails())
    #expect(try backend.text(alice) == "value!" && backend.text(bob) == nil)
  }

  @Test func anItemThatAnotherProgramStoresDuringAMoveIsKept() async throws {
    let service = try await ScriptedService(keyring, storingWith: "stores-during-a-move")
    defer { service.kill() }
    try backend.store("value", alice)
    #expect(try backend.move(alice, to: bob, replacing: false, all: false) == .moved)
    #expect(try backend.text(alice) == "another program's" && backend.text(bob) == "value")
  }

  @Test func aMoveIsFinishedWithTheNextProcessOfTheService() async throws {
    let service = try await ScriptedService(keyring, storingWith: "ends-before-bob-is-deleted")
    defer { service.kill() }
    try backend.store("value", alice)
    try backend.store("replaced", bob)
    #expect(try backend.move(alice, to: bob, replacing: true, all: false) == .moved)
    #expect(try backend.text(alice) == nil && backend.text(bob) == "value")
    let items = try JSONSerialization.jsonObject(
      with: Data(contentsOf: URL(filePath: keyring.path("scripted.log"))))
    #expect((items as? [String: Any])?.count == 1)
  }

  @Test func theCopyOfAnOriginalThatCannotBeDeletedIsDeleted() async throws {
    let service = try await ScriptedService(keyring, storingWith: "keeps-alice")
    defer { service.kill() }
    try backend.store("value", alice)
    #expect(moveFails())
    #expect(try backend.text(alice) == "value" && backend.text(bob) == nil)
  }
}
#endif
