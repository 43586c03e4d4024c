internal import ArgumentParser
internal import Coffer

struct KeyringCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyring",
    abstract: "Stand in for Python's keyring command, which pip and uv run.",
    discussion: """
      pip and uv run a program named keyring: make a link of that name to this program in a directory early on \
      PATH, and use --keyring-provider subprocess. SERVICE and USERNAME are the secret's service and name, as they \
      are for Python's keyring itself.
      """
  )

  enum Operation: String, ExpressibleByArgument {
    case get, set, del
  }
  enum Mode: String, CaseIterable, ExpressibleByArgument {
    case password, creds
  }

  enum Format: String, CaseIterable, ExpressibleByArgument {
    case plain, json
  }

  @OptionGroup(title: "Global options") var global: StoreOptions

  @Option(help: "What get prints: password, or creds for the username on a line of its own before it.")
  var mode = Mode.password

  @Option(help: "How get prints it: plain, or json for an object of username and password.")
  var output = Format.plain

  @Argument(help: "get, set, or del.")
  var operation: Operation

  @Argument(help: "The service: for pip and uv an index's address.")
  var service: String

  @Argument(help: "The username. With --mode creds it may be left out, for the login stored last.")
  var username: String?

  func run() throws {
    let store = try global.store()
    switch operation {
    case .get: try get(from: store)
    case .set:
      let identifier = try named()
      let value = try ValueInput().read(for: identifier.account)
      try store.store(value, for: identifier)
    case .del:
      let identifier = try named()
      guard try store.remove(identifier) else { throw MissingSecret.failure(identifier, in: store) }
    }
  }

  private func get(from store: any SecretBackend) throws {
    let identifier: SecretIdentifier?
    if mode == .creds && username == nil {
      identifier = try StoredLogin.latest(in: service, of: store)
    } else {
      identifier = try named()
    }
    // Silent, as keyring is: pip shows what is said to its users, and asks for the password then.
    guard let identifier, let value = try store.lookUp(identifier) else { throw ExitCode(1) }
    switch output {
    case .json:
      let username = mode == .creds ? identifier.account : nil
      try ProgramJSON.line(Login(username: username, password: try value.string()))
    case .plain:
      if mode == .creds { try Output.standard.write(identifier.account + "\n") }
      try Output.standard.write(value)
      try Output.standard.write("\n")
    }
  }

  private struct Login: Encodable {
    var username: String?
    let password: String
  }

  private func named() throws -> SecretIdentifier {
    guard let username else { throw Failure.usage("There is no username. Give it behind the service.") }
    return try SecretIdentifier(service: service, account: username)
  }
}
