// A client whose processes share one token, with a pretended login service and a pretended API. The token is good for
// four requests. Then it must be refreshed, and its refresh token is valid once: if two processes use it, the login is
// lost.
//
//     TokenRefresh LEDGER sign-in             stores the first token
//     TokenRefresh LEDGER requests COUNT      makes requests; start several processes at the same time
//     TokenRefresh LEDGER sign-out            erases the token
//
// LEDGER is a file in which the pretended servers write down each token that they are given, and the process. The store
// is the keyring, or the vault of `secret init`. The directory TokenStore has the code for a program of your own.
//
//     TokenRefresh LEDGER refreshes COUNT ACKNOWLEDGEMENTS
//
// is for the test that kills processes. Each access token has expired when it is made, and so each request needs a
// refresh. For each refresh, the number of the stored token and the process are appended to the file ACKNOWLEDGEMENTS.

import Foundation
import TokenStore

@main
enum TokenRefresh {
  static func main() async {
    do {
      try await run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      // An error of Coffer says what happened and what to do. It never contains a secret.
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }

  static func run(_ arguments: [String]) async throws {
    let usage = Failure("usage: TokenRefresh LEDGER sign-in | requests COUNT | sign-out")
    guard arguments.count >= 2 else { throw usage }
    var servers = PretendedServers(ledger: Ledger(path: arguments[0]))
    let count = arguments.count > 2 ? Int(arguments[2]) : nil

    switch (arguments[1], count, arguments.count) {
    case ("sign-in", nil, 2):
      try await store(servers).signIn(PretendedServers.token(0, lifetime: servers.lifetime))
    case ("requests", let count?, 3):
      for _ in 0..<count { try await request(store(servers), servers) }
      print("\(count) requests")
    case ("sign-out", nil, 2):
      try await store(servers).signOut()
    case ("refreshes", let count?, 4):
      servers.lifetime = 0
      for _ in 0..<count {
        let accessToken = try await accessToken(store(servers))
        try appendLine("\(PretendedServers.number(accessToken)) \(getpid())", to: arguments[3])
      }
    default: throw usage
    }
  }

  static func store(_ servers: PretendedServers) -> TokenStore {
    TokenStore(application: "com.example.token-refresh", login: servers)
  }

  /// Makes one request. If the API does not accept the token, tries again with the next one. The other processes can
  /// use up several tokens in that time, but not a hundred.
  static func request(_ store: TokenStore, _ servers: PretendedServers) async throws {
    var token = try await accessToken(store)
    for _ in 0..<100 {
      if try servers.accept(token) { return }
      token = try await accessToken(store, insteadOf: token)
    }
    throw Failure("The API accepts no token.")
  }

  static func accessToken(_ store: TokenStore, insteadOf rejected: String? = nil) async throws -> String {
    guard let token = try await store.accessToken(insteadOf: rejected) else {
      throw Failure("Nobody is signed in.")
    }
    return token
  }
}
