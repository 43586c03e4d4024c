import Foundation
import TokenStore

/// What the servers of somebody else would do: the login service, and an API that is used with its tokens.
///
/// The tokens have numbers. Refresh token 3 gives the token 4: `access-4` and `refresh-4`. A real service would refuse
/// a refresh token that is used for the second time. This one accepts it, and its ledger shows the second use.
struct PretendedServers: LoginService {
  static let requestsPerToken = 4

  let ledger: Ledger
  /// The time in seconds after which a new access token expires.
  var lifetime: TimeInterval = 3600

  static func token(_ number: Int, lifetime: TimeInterval) -> Token {
    Token(accessToken: "access-\(number)", refreshToken: "refresh-\(number)", expires: .now + lifetime)
  }

  static func number(_ text: String) throws -> Int {
    guard let number = text.split(separator: "-").last.flatMap({ Int($0) }) else {
      throw Failure("That is not a token of the pretended service.")
    }
    return number
  }

  func refresh(_ refreshToken: String) async throws -> Token {
    let number = try Self.number(refreshToken)
    try ledger.append(.given, number)
    // A slow network, so that a second process would come in between.
    try await Task.sleep(for: .milliseconds(.random(in: 1...10)))
    try ledger.append(.answered, number)
    return Self.token(number + 1, lifetime: lifetime)
  }

  /// Whether the API accepts a request with the access token. All processes together can make four requests with each
  /// token.
  func accept(_ accessToken: String) throws -> Bool {
    let number = try Self.number(accessToken)
    return try ledger.withLock {
      let used = try ledger.events().count { $0.kind == .accepted && $0.number == number }
      guard used < Self.requestsPerToken else { return false }
      try ledger.append(.accepted, number)
      return true
    }
  }
}
