// A worker that shares a token with other processes. The token is good for a few requests. Then it must be refreshed, and
// its refresh token is valid once: if two processes use it, the login is lost.
//
//     TokenRefresh LEDGER
//
// makes 20 requests. Start any number of copies at the same time. LEDGER is a file in which the pretended login service
// writes down each refresh token that it is given.

import Coffer
import Glibc

/// The access token, and the refresh token for the next one.
struct Token: Codable, Sendable {
  var access: String
  var refresh: Int
  var requestsLeft: Int
}

let token = SecurelyStoredValue<Token>(key: "token", service: "com.example.token-refresh")

/// Returns a token that is good for one more request.
func usableToken() async throws -> Token {
  // One process at a time refreshes: `refreshed` takes the lease of the secret. The others wait, and get the new token.
  let current = try await token.refreshed(unless: { $0.requestsLeft > 0 }) { old in
    try LoginService.refresh(old?.refresh ?? 0)
  }
  // One step for all processes, so that no request is counted twice.
  let isCounted = try await token.update { value in
    guard var used = value, used.refresh == current.refresh, used.requestsLeft > 0 else { return false }
    used.requestsLeft -= 1
    value = used
    return true
  }
  // Another process made the last request with this token in the meantime.
  return isCounted ? current : try await usableToken()
}

/// What a server of somebody else would do.
enum LoginService {
  static func refresh(_ refreshToken: Int) throws -> Token {
    let ledger = open(CommandLine.arguments[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard ledger >= 0 else { throw Failure("The ledger cannot be opened: error \(errno).") }
    defer { close(ledger) }
    let line = Array("refresh token \(refreshToken)\n".utf8)
    guard write(ledger, line, line.count) == line.count else { throw Failure("The ledger is not written.") }
    // A slow network, so that a second process would come in between.
    usleep(20_000)
    return Token(access: "access \(refreshToken + 1)", refresh: refreshToken + 1, requestsLeft: 4)
  }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

@main
enum TokenRefresh {
  static func main() async {
    do {
      guard CommandLine.arguments.count == 2 else { throw Failure("usage: TokenRefresh LEDGER") }
      for _ in 0..<20 { _ = try await usableToken() }
      print("20 requests")
    } catch {
      let message = Array("\(error)\n".utf8)
      write(STDERR_FILENO, message, message.count)
      exit(1)
    }
  }
}
