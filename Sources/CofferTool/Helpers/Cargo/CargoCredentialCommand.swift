internal import ArgumentParser
internal import Coffer

struct CargoCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "cargo-credential", abstract: "Store cargo's tokens, as a credential provider for cargo.",
    discussion: """
      In ~/.cargo/config.toml, write credential-provider = ["secret"] for a registry, or \
      global-credential-providers = ["secret"] in [registry]; cargo then runs secret --cargo-plugin. The token of a \
      registry is the secret token in the service cargo:INDEX-URL.
      """)

  /// The argument with which cargo runs a credential provider.
  static let mark = "--cargo-plugin"

  @OptionGroup(title: "Global options") var backendOptions: BackendOptions

  @Flag(name: .customLong("cargo-plugin"), help: "Accepted because cargo always passes it.")
  var isPlugin = false

  func run() throws {
    // The first message of a provider: the versions that it supports.
    try Output.standard.jsonLine(["v": [1]])
    while let line = try CargoProtocol.readLine() {
      var answer: JSONObject
      do {
        let request = try ProgramJSON.decode(
          line, as: CargoProtocol.Request.self, expected: "a request of cargo's protocol, version 1")
        answer = try self.answer(to: request)
      } catch {
        guard let failure = Failure(error) else { throw error }
        answer = Self.failed("other", message: failure.message, causes: [])
      }
      try Output.standard.jsonLine(answer)
    }
  }

  private static func failed(_ kind: String, message: String? = nil, causes: [String]? = nil) -> JSONObject {
    ["Err": ["kind": kind, "message": message, "caused-by": causes] as JSONObject]
  }

  private func answer(to request: CargoProtocol.Request) throws -> JSONObject {
    guard request.v == 1 else {
      throw Failure.usage("cargo uses version \(request.v) of its protocol, and only version 1 is supported.")
    }
    let identifier = try SecretIdentifier(service: "cargo:" + request.registry.indexURL, account: "token")
    let backend = try backendOptions.open()
    var done: JSONObject = ["kind": request.kind]
    switch request.kind {
    case "get":
      guard let value = try backend.lookUp(identifier) else { return Self.failed("not-found") }
      done = ["kind": request.kind, "token": try value.string(), "cache": "session", "operation_independent": true]
    case "login":
      if let token = request.token {
        try backend.storeIfChanged(SecretBytes(token), for: identifier)
      } else {
        guard BackendConfiguration.current().canPrompt else {
          throw Failure.usage("There is no token, and a prompt is not possible.")
        }
        let token = try Terminal().readLine("Token for \(request.registry.indexURL): ")
        if token.isEmpty { throw Failure(.refused, "Nothing was entered.") }
        try backend.storeIfChanged(token, for: identifier)
      }
    case "logout":
      guard try backend.remove(identifier) else { return Self.failed("not-found") }
    default: return Self.failed("operation-not-supported")
    }
    return ["Ok": done]
  }
}
