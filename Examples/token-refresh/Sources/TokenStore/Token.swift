import Foundation

/// What an OAuth login service gives to a client that has signed in.
public struct Token: Codable, Equatable, Sendable {
  /// The text that each request shows to the server.
  public var accessToken: String
  /// The text that gets the next token from the login service. Many services accept it only once.
  public var refreshToken: String
  /// When the access token expires. The login service answers with the number of seconds, `expires_in`.
  public var expires: Date
  public var tokenType: String
  /// What the access token permits, or `nil` if the login service does not say it.
  public var scope: String?

  public init(
    accessToken: String, refreshToken: String, expires: Date, tokenType: String = "Bearer",
    scope: String? = nil
  ) {
    (self.accessToken, self.refreshToken, self.expires) = (accessToken, refreshToken, expires)
    (self.tokenType, self.scope) = (tokenType, scope)
  }
}

extension Token: CustomStringConvertible {
  /// Without the two secrets, so that a log does not contain them.
  public var description: String { "\(tokenType) token, expires \(expires)" }
}

/// The server that gives new tokens.
public protocol LoginService: Sendable {
  /// Exchanges a refresh token for a new token. If the answer has no new refresh token, the old one stays valid: return
  /// it in the new token.
  ///
  /// Throws ``RefreshTokenRefused`` if the service answers `invalid_grant`, and any other error if there is no answer
  /// or a different one. Must end within 30 seconds, because other processes wait for so long.
  func refresh(_ refreshToken: String) async throws -> Token
}

/// The login service answers `invalid_grant`: the refresh token is used, expired or revoked. The person must sign in
/// again.
public struct RefreshTokenRefused: Error {
  public init() {}
}
