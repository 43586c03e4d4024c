internal import ArgumentParser
internal import Coffer

struct CargoCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cargo-credential",
    abstract: "Keep cargo's tokens: a credential provider for cargo.",
    discussion: """
      Write credential-provider = ["secret"] below a registry, or global-credential-providers = ["secret"] below \
      [registry], in ~/.cargo/config.toml; cargo runs secret --cargo-plugin. The token of a registry is the secret \
      named token in the service cargo:INDEX-URL.
      """
  )

  /// The argument by which cargo says that it is the one who asks.
  static let mark = "--cargo-plugin"

  @OptionGroup(title: "Global options") var global: StoreOptions

  @Flag(name: .customLong("cargo-plugin"), help: "What cargo always gives; it means nothing.")
  var isPlugin = false

  private struct Request: Decodable {
    struct Registry: Decodable {
      var indexURL: String
      private enum CodingKeys: String, CodingKey { case indexURL = "index-url" }
    }
    var v: Int
    var kind: String
    var registry: Registry
    var token: String?
  }

  private struct Greeting: Encodable {
    let v = [1]
  }
  private struct Answer: Encodable {
    enum CodingKeys: String, CodingKey {
      case done = "Ok"
      case failed = "Err"
    }
    struct Done: Encodable {
      enum CodingKeys: String, CodingKey {
        case kind, token, cache
        case operationIndependent = "operation_independent"
      }
      var kind: String
      var token: String?
      var cache: String?
      var operationIndependent: Bool?
    }
    struct Failed: Encodable {
      enum CodingKeys: String, CodingKey {
        case kind, message
        case causes = "caused-by"
      }
      var kind: String
      var message: String?
      var causes: [String]?
    }
    var done: Done?
    var failed: Failed?
  }

  func run() throws {
    try ProgramJSON.line(Greeting())
    while let line = try Self.nextLine() {
      var answer = Answer()
      do {
        answer = try handle(
          ProgramJSON.decode(line, as: Request.self, wanted: "a request of cargo's, version 1"))
      } catch let error as SecretError {
        answer.failed = Answer.Failed(kind: "other", message: "\(error)", causes: [])
      } catch let failure as Failure {
        answer.failed = Answer.Failed(kind: "other", message: failure.message, causes: [])
      }
      try ProgramJSON.line(answer)
    }
  }

  private func handle(_ request: Request) throws -> Answer {
    guard request.v == 1 else {
      throw Failure.usage("cargo speaks version \(request.v) of its protocol, and this is version 1.")
    }
    let identifier = try SecretIdentifier(service: "cargo:" + request.registry.indexURL, account: "token")
    let store = try global.store()
    var done = Answer.Done(kind: request.kind)
    switch request.kind {
    case "get":
      guard let value = try store.lookUp(identifier) else {
        return Answer(failed: Answer.Failed(kind: "not-found"))
      }
      done.token = try value.string()
      done.cache = "session"
      done.operationIndependent = true
    case "login":
      if let token = request.token {
        try store.store(SecretBytes(copying: token), for: identifier)
      } else {
        guard CofferConfiguration.current().mayPrompt, Terminal.isThere else {
          throw Failure.usage("There is no token, and nobody may be asked for one.")
        }
        let token = try Terminal().readHidden("Token for \(request.registry.indexURL): ")
        if token.isEmpty { throw Failure(.refused, "Nothing was entered, and nothing was stored.") }
        try store.store(token, for: identifier)
      }
    case "logout":
      guard try store.remove(identifier) else {
        return Answer(failed: Answer.Failed(kind: "not-found"))
      }
    default: return Answer(failed: Answer.Failed(kind: "operation-not-supported"))
    }
    return Answer(done: done)
  }

  /// One line of standard input, or `nil` at its end. cargo waits for the answer before it writes another, so
  /// that nothing may be read beyond.
  private static func nextLine() throws(SecretError) -> SecretBytes? {
    try ValueInput.readLine(0, named: "standard input")
  }
}
