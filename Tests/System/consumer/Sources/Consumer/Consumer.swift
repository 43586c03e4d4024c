import Coffer
import Observation

struct Session: Codable, Sendable, Equatable {
  var user: String
  var scopes: [String]
}

@Observable
final class Account {
  @ObservationIgnored
  @SecurelyStoredValue<String>(key: "token", service: "consumer") var token
  @ObservationIgnored
  @SecurelyStoredValue<Session>(key: "session", service: "consumer") var session
  @ObservationIgnored
  @SecurelyStoredValue<Bool>(key: "is-trusted", service: "consumer") var isTrusted
  @ObservationIgnored
  @SecurelyStoredValue<[Int]>(key: "history", service: "consumer") var history
}

/// `store` stores four values. `read`, in a later process, prints them. `watch` prints each element of `values` and
/// each call by Observation, until the token is `done`.
@main struct Consumer {
  static func main() async throws {
    let account = Account()
    switch CommandLine.arguments.dropFirst().first {
    case "store":
      try await account.$token.set("tøken")
      try await account.$session.set(Session(user: "ann", scopes: ["read", "write"]))
      try await account.$isTrusted.toggle()
      try await account.$history.set([1, 2])
      try await account.$history.append(3)
      print("stored")
    case "read":
      guard account.session == Session(user: "ann", scopes: ["read", "write"]) else {
        fatalError("session: \(String(describing: account.$session.lastError))")
      }
      print(account.token ?? "none", account.isTrusted == true, account.history ?? [])
    case "watch":
      func observe() {
        withObservationTracking {
          _ = account.token
        } onChange: {
          print("observed")
        }
      }
      observe()
      for await token in account.$token.values {
        print("value: \(token ?? "none")")
        if token == "done" { break }
      }
    default:
      fatalError("usage: Consumer store|read|watch")
    }
  }
}
