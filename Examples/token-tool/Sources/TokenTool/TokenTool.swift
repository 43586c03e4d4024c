// A command line tool that keeps an API token.
//
//     printf %s "$TOKEN" | TokenTool login
//     TokenTool status
//     TokenTool logout
//
// The token is in the store that `secret init` has chosen, and `secret -s com.example.token-tool` reads and writes it
// too.

import Coffer
import Glibc

struct Account {
  @SecurelyStoredValue<String>(key: "api-token", service: "com.example.token-tool")
  var token

  /// Stores the token that standard input contains. A token never comes from an argument, which other users can read.
  func logIn() throws {
    guard let new = readLine(strippingNewline: true), !new.isEmpty else {
      throw Failure("Standard input contains no token.")
    }
    try $token.set(new)
    print("The token is stored.")
  }

  /// `get()` throws if the store is locked or cannot be reached, and returns `nil` only if there is no token.
  func status() throws {
    guard let token = try $token.get() else { return print("There is no token.") }
    print("There is a token of \(token.count) characters.")
  }

  func logOut() throws {
    try $token.erase()
    print("The token is removed.")
  }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

@main
enum TokenTool {
  static func main() {
    let account = Account()
    do {
      switch CommandLine.arguments.dropFirst().first {
      case "login": try account.logIn()
      case "status": try account.status()
      case "logout": try account.logOut()
      default: throw Failure("usage: TokenTool login | status | logout")
      }
    } catch {
      // An error of Coffer says what happened and what to do. It never contains a secret.
      let message = Array("\(error)\n".utf8)
      write(STDERR_FILENO, message, message.count)
      exit(1)
    }
  }
}
