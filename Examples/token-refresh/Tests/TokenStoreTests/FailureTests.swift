import Coffer
import CofferTesting
import Foundation
import Testing
import TokenStore

/// A store that fails is not a person who has signed out: the error is thrown.
@Suite(.serialized, .timeLimit(.minutes(30))) struct FailureTests {
  private let login = ScriptedLogin()

  private func tokenStore(_ backend: any SecretBackend) -> TokenStore {
    TokenStore(application: "tests", login: login, backend: backend)
  }

  private func code(_ body: () async throws -> String?) async throws -> SecretError.Code? {
    do {
      let token = try await body()
      Issue.record("no error, but \(token == nil ? "nil" : "a token")")
      return nil
    } catch let error as SecretError {
      return error.code
    }
  }

  @Test(arguments: TestStore.Kind.allCases)
  func errorsOfTheStoreAreThrown(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let backend = FailingBackend(store.backend)
    let tokens = tokenStore(backend)
    try await tokens.signIn(.expired("a"))
    let codes = [SecretError.Code.locked, .denied, .unavailable, .timedOut, .tampered, .promptDismissed, .io]
    for (code, call) in codes.flatMap({ code in [FailingBackend.Call.lookUp, .lease].map { (code, $0) } }) {
      backend.fail(call, with: SecretError(code, "A failure of the test."))
      #expect(try await self.code { try await tokens.accessToken() } == code)
      backend.recover()
    }
    #expect(login.given == [])
    #expect(try await tokens.accessToken() == "access after a")
  }

  @Test(arguments: TestStore.Kind.allCases)
  func aTokenThatCannotBeErasedIsNotSignedOut(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let backend = FailingBackend(store.backend)
    let tokens = tokenStore(backend)
    try await tokens.signIn(.expired("a"))
    login.answer { _ in throw RefreshTokenRefused() }
    backend.fail(.remove, with: SecretError(.denied, "A failure of the test."))
    #expect(try await code { try await tokens.accessToken() } == .denied)
    await #expect(throws: SecretError.self) { try await tokens.signOut() }
    backend.recover()
    #expect(try await tokens.accessToken() == nil)
  }

  @Test func aVaultWithoutItsKeyAndADamagedVault() async throws {
    let store = try await TestStore(.vault)
    try await tokenStore(store.backend).signIn(.valid("a"))
    let vault = store.file("test.vault")
    let locked = VaultBackend(path: vault, credentials: [])
    #expect(try await code { try await tokenStore(locked).accessToken() } == .locked)

    let key = try VaultKey.parse(SecretBytes(store.environment["COFFER_KEY"] ?? ""))
    let again = { VaultBackend(path: vault, key: key) }
    #expect(try await tokenStore(again()).accessToken() == "access a")
    var bytes = try Data(contentsOf: URL(fileURLWithPath: vault))
    for index in bytes.indices.dropFirst(bytes.count / 2) { bytes[index] ^= 1 }
    try bytes.write(to: URL(fileURLWithPath: vault))
    #expect(try await code { try await tokenStore(again()).accessToken() } == .tampered)
  }

  @Test func aKeyringThatHasEndedAndALockedKeyring() async throws {
    let store = try await TestStore(.keyring)
    let session = try #require(store.session)
    try await tokenStore(session.backend).signIn(.valid("a"))
    try await session.end()
    #expect(try await code { try await tokenStore(session.backend).accessToken() } == .unavailable)
    let locked = try await KeyringSession(in: store.directory, isLocked: true)
    #expect(try await code { try await tokenStore(locked.backend).accessToken() } == .locked)
    #expect(login.given == [])
  }
}
