// The token store of an OAuth client. Copy the two files of this directory into your program, and write the
// LoginService for your login service. Several processes can use the store at the same time. Only one of them refreshes
// the token.
//
//     let store = TokenStore(application: "com.example.app", login: login)
//     try await store.signIn(token)
//     let accessToken = try await store.accessToken()     // nil: ask the person to sign in
//     try await store.signOut()

import Coffer
import Foundation

/// Keeps the token of one person, and refreshes it when it is needed. Thread-safe.
///
/// Each method throws the errors of Coffer, such as `.locked` or `.unavailable`. `accessToken` throws `.timedOut` if
/// others keep the lease of the token for 30 seconds, and the other methods after two minutes, so a refresh must end in
/// less. The stored token then stays. A cancelled task that waits for the lease throws `CancellationError`. None of
/// these errors means that nobody is signed in.
public struct TokenStore: Sendable {
  /// An access token that expires within this time, in seconds, is refreshed before it is used.
  private static let margin: TimeInterval = 60

  private let token: SecurelyStoredValue<Token>
  private let login: any LoginService

  /// Creates the store of a program. `nil` as `backend` stands for the keyring or the vault of the person.
  public init(application: String, login: any LoginService, backend: (any SecretBackend)? = nil) {
    token = SecurelyStoredValue(
      key: "oauth-token", service: application, backend: backend, label: "Token of \(application)")
    self.login = login
  }

  /// Stores the token of a person who has signed in.
  public func signIn(_ new: Token) async throws {
    // With the lease: a refresh of the token before this one would otherwise end later and replace the new token.
    try await token.withLease(timeout: .seconds(120)) { try await token.set(new) }
  }

  /// Returns an access token that has not expired, or `nil` if nobody is signed in.
  ///
  /// If the API answers 401 to a request, call the method again with the access token of that request as `rejected`. It
  /// then returns another one.
  ///
  /// If the login service refuses the refresh token, erases the token and returns `nil`. Throws every other error of
  /// the login service. The stored token then stays, and the next call tries again.
  ///
  /// If the store fails after the answer of the login service, storing is tried again for 30 seconds. Then
  /// `UnstoredValue` is thrown, which has the new token: keep it, and store it later. If the process is killed in that
  /// time, the new token is lost, and the next process shows the old one again. A login service that accepts a refresh
  /// token only once then refuses it, and the person must sign in again.
  public func accessToken(insteadOf rejected: String? = nil) async throws -> String? {
    do {
      // `refreshed` takes the lease of the token. The other processes wait, and then get the new token.
      return try await token.refreshed(
        unless: { $0.expires > .now + Self.margin && $0.accessToken != rejected }, by: refresh
      ).accessToken
    } catch is NobodyIsSignedIn {
      return nil
    }
  }

  /// Removes the token with every earlier version of it.
  public func signOut() async throws {
    // With the lease: a refresh would otherwise end later and store a token again.
    try await token.withLease(timeout: .seconds(120)) { _ = try await token.erase() }
  }

  /// Only for the process that has the lease.
  private func refresh(_ old: Token?) async throws -> Token {
    guard let old else { throw NobodyIsSignedIn() }
    do {
      // In a task of its own: the caller can be cancelled after the login service has used up the refresh token. The
      // answer must be stored in that case too.
      return try await Task { try await login.refresh(old.refreshToken) }.value
    } catch is RefreshTokenRefused {
      try await token.erase()
      throw NobodyIsSignedIn()
    }
  }
}

private struct NobodyIsSignedIn: Error {}
