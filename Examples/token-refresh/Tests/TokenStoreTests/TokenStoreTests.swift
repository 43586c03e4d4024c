import Coffer
import CofferTesting
import Foundation
import Testing
import TokenStore

/// What one process sees of the token, in each kind of store.
@Suite(.serialized, .timeLimit(.minutes(30))) struct TokenStoreTests {
  private let login = ScriptedLogin()

  private func tokenStore(_ backend: any SecretBackend) -> TokenStore {
    TokenStore(application: "tests", login: login, backend: backend)
  }

  @Test(arguments: TestStore.Kind.allCases)
  func aTokenIsUsedUntilItIsAboutToExpire(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let tokens = tokenStore(store.backend)
    #expect(try await tokens.accessToken() == nil)
    try await tokens.signIn(.valid("a"))
    #expect(try await tokens.accessToken() == "access a")
    #expect(login.given == [])

    for almost in [30, 0, -3600] {
      try await tokens.signIn(.expiring(in: TimeInterval(almost), "b"))
      #expect(try await tokens.accessToken() == "access after b")
      #expect(login.given.last == "b")
      #expect(try await tokenStore(store.backend).accessToken() == "access after b")
    }
    #expect(login.given.count == 3)
  }

  @Test(arguments: TestStore.Kind.allCases)
  func signingOutLeavesNothing(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let tokens = tokenStore(store.backend)
    try await tokens.signIn(.expired("a"))
    _ = try await tokens.accessToken()
    try await tokens.signOut()
    #expect(try await tokens.accessToken() == nil)
    #expect(login.given == ["a"])
    #expect(try await store.backend.perform { try $0.items(inService: nil) }.isEmpty)
    #expect(try await store.backend.perform { try $0.removedItems(inService: nil) }.isEmpty)
    try await tokens.signOut()
  }

  @Test(arguments: TestStore.Kind.allCases)
  func ofManyTasksOneRefreshes(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    try await tokenStore(store.backend).signIn(.expired("a"))
    let found = try await withThrowingTaskGroup(of: String?.self) { group in
      for _ in 0..<8 { group.addTask { try await tokenStore(store.backend).accessToken() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(found == ["access after a"])
    #expect(login.given == ["a"])
  }

  @Test(arguments: TestStore.Kind.allCases)
  func aTokenThatTheServerRejectsIsRefreshedOnce(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let tokens = tokenStore(store.backend)
    try await tokens.signIn(.valid("a"))
    for _ in 0..<2 { #expect(try await tokens.accessToken(insteadOf: "access a") == "access after a") }
    #expect(login.given == ["a"])
  }

  @Test(arguments: TestStore.Kind.allCases)
  func aRefusedRefreshTokenSignsOut(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let tokens = tokenStore(store.backend)
    try await tokens.signIn(.expired("a"))
    login.answer { _ in throw RefreshTokenRefused() }
    for _ in 0..<2 { #expect(try await tokens.accessToken() == nil) }
    #expect(login.given == ["a"])
    #expect(try await store.backend.perform { try $0.items(inService: nil) }.isEmpty)
  }

  @Test(arguments: TestStore.Kind.allCases)
  func afterANetworkFailureTheNextCallTriesAgain(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let tokens = tokenStore(store.backend)
    try await tokens.signIn(.expired("a"))
    login.answer { _ in throw NetworkFailure() }
    await #expect(throws: NetworkFailure.self) { try await tokens.accessToken() }
    login.answer { .valid("after \($0)") }
    #expect(try await tokens.accessToken() == "access after a")
    #expect(login.given == ["a", "a"])
  }

  /// The login service has used up the refresh token when the caller is cancelled.
  @Test(arguments: TestStore.Kind.allCases)
  func theTokenOfACancelledCallerIsStored(_ kind: TestStore.Kind) async throws {
    let store = try await TestStore(kind)
    let tokens = tokenStore(store.backend)
    try await tokens.signIn(.expired("a"))
    let (isAsked, mayAnswer) = (Gate(), Gate())
    login.answer { name in
      isAsked.open()
      await mayAnswer.wait()
      try Task.checkCancellation()
      return .valid("after \(name)")
    }
    let caller = Task { try await tokens.accessToken() }
    await isAsked.wait()
    caller.cancel()
    mayAnswer.open()
    _ = await caller.result
    #expect(try await tokens.accessToken() == "access after a")
    #expect(login.given == ["a"])
  }

  enum Change: CaseIterable { case signIn, signOut }

  @Test(arguments: TestStore.Kind.allCases, Change.allCases)
  func aChangeDuringARefreshStays(_ kind: TestStore.Kind, _ change: Change) async throws {
    let store = try await TestStore(kind)
    let backend = FailingBackend(store.backend)
    let tokens = tokenStore(backend)
    try await tokens.signIn(.expired("a"))
    let (isAsked, mayAnswer) = (Gate(), Gate())
    login.answer { name in
      isAsked.open()
      await mayAnswer.wait()
      return .valid("after \(name)")
    }
    async let refreshed = tokens.accessToken()
    await isAsked.wait()
    let (leases, stores) = (backend.count(of: .lease), backend.count(of: .store))
    async let changed: Void =
      switch change {
      case .signIn: tokens.signIn(.valid("b"))
      case .signOut: tokens.signOut()
      }
    // Until the change waits for the refresh. A change that does not wait has ended by then.
    try await eventually("the change has begun") {
      backend.count(of: .lease) > leases || backend.count(of: .store) > stores
        || backend.count(of: .remove) > 0
    }
    mayAnswer.open()
    #expect(try await refreshed == "access after a")
    try await changed
    #expect(try await tokens.accessToken() == (change == .signIn ? "access b" : nil))
  }
}
