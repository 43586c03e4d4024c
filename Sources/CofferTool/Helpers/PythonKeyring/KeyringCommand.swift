internal import ArgumentParser
internal import Coffer

struct KeyringCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "keyring", abstract: "Replace Python's keyring command, which pip and uv run.",
    discussion: """
      pip and uv run a program named keyring: create a link of that name to this program in a directory early on \
      PATH, and use --keyring-provider subprocess. SERVICE and USERNAME are the secret's service and name, as in \
      Python's keyring. From a pipe, set drops one final line feed, as Python's program does.
      """)

  enum Operation: String, ExpressibleByArgument {
    case get, set, del
  }
  enum Mode: String, CaseIterable, ExpressibleByArgument {
    case password, creds
  }

  enum Format: String, CaseIterable, ExpressibleByArgument {
    case plain, json
  }

  @OptionGroup(title: "Global options") var backendOptions: BackendOptions

  @Option(help: "What get prints: password, or creds for the username on a line before the password.")
  var mode = Mode.password

  @Option(help: "The format of get: plain, or json for an object with username and password.")
  var output = Format.plain

  @Argument(help: "get, set, or del.")
  var operation: Operation

  @Argument(help: "The service: for pip and uv, the URL of an index.", completion: CompletedValue.services.kind)
  var service: String

  @Argument(help: "The username. With --mode creds, the default is the login that was stored last.")
  var username: String?

  func run() throws {
    let backend = try backendOptions.open()
    switch operation {
    case .get: try get(from: backend)
    case .set:
      let identifier = try requiredIdentifier()
      let text = try ValueInput(verbatim: true).read(for: identifier.account)
      let value = text.endsWithLineFeed ? text.prefix(text.count - 1) : text
      if value.isEmpty {
        throw try Failure.empty(
          "The password is empty", identifier, in: backend,
          advice: "Check the program before the pipe. To store an empty value: secret set --allow-empty")
      }
      // `creds` without a username prints the login that was stored last: this one, even if its password is the same.
      if try backend.latestLogin(inService: service) == identifier {
        try backend.storeIfChanged(value, for: identifier)
      } else {
        try backend.store(value, for: identifier)
      }
    case .del:
      let identifier = try requiredIdentifier()
      guard try backend.remove(identifier) else { throw MissingSecret.failure(identifier, in: backend) }
    }
  }

  private func get(from backend: any SecretBackend) throws {
    let identifier =
      try mode == .creds && username == nil
      ? backend.latestLogin(inService: service) : requiredIdentifier()
    // Prints no message, like keyring: pip would show it to its user before it prompts for the password.
    guard let identifier, let value = try backend.lookUp(identifier) else { throw ExitCode(1) }
    switch output {
    case .json:
      var login = ["password": try value.string()]
      if mode == .creds { login["username"] = identifier.account }
      try Output.standard.jsonLine(login)
    case .plain:
      if mode == .creds {
        var answer = AnswerLines(about: identifier)
        try answer.add("username", identifier.account)
        try answer.add("value", value)
        return try answer.send()
      }
      // The password is the whole output, and may have several lines.
      try Output.standard.reveal(value, "The value", ". Use a pipe.")
      try Output.standard.write("\n")
    }
  }

  private func requiredIdentifier() throws -> SecretIdentifier {
    guard let username else { throw Failure.usage("There is no username. Add it after the service.") }
    return try SecretIdentifier(service: service, account: username)
  }
}
