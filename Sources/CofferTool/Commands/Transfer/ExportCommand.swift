internal import ArgumentParser
internal import Coffer

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write secrets in plain text, for another program or another store.",
    discussion: """
      As JSON everything is there, to be imported again. As dotenv there are lines of NAME='value' only, with names as \
      secret run gives them: github-token as GITHUB_TOKEN. What will be revealed is named on standard error first. A \
      file is made for its owner alone. Anyone who reads the output has the secrets.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secrets' names. Default: all of the service.", completion: NameCompletion.kind)
  var names: [String] = []

  @Flag(help: "The secrets of all services.")
  var allServices = false

  @Option(help: "json or dotenv.")
  var format = ExchangeFormat.json

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Write to this file, which must not be there yet.", valueName: "path"))
  var output: String?

  @Flag(help: "Write over a file, or to a terminal.")
  var force = false

  func run() throws {
    if output == nil && Output.standard.isTerminal && !force {
      throw Failure.usage(
        "The secrets would be shown on the terminal. Use --output PATH or a pipe, or add --force to show them."
      )
    }
    if allServices && !names.isEmpty {
      throw Failure.usage("--all-services is for everything, and names were given. Give one of the two.")
    }
    let store = try global.store()
    let items = try chosen(from: store)
    if items.isEmpty {
      throw Failure(.noSuchSecret, "There are no secrets to export in the service “\(global.serviceName)”.")
    }
    note("Revealing \(ImportCommand.listed(items.map(\.identifier.account))).")
    let secrets = try items.map { item in
      guard let value = try store.lookUp(item.identifier) else {
        throw MissingSecret.failure(item.identifier, in: store)
      }
      return ExchangedSecret(
        identifier: item.identifier, value: SharedSecret(value), metadata: item.metadata)
    }
    let text =
      switch format {
      case .json: try ExchangeFile(secrets).text()
      case .dotenv: try Self.dotenv(secrets, items)
      }
    if let output {
      try PrivateFile.write(text, to: output, replacing: force)
    } else {
      try Output.standard.write(text)
    }
  }

  private func chosen(from store: any SecretBackend) throws -> [SecretItem] {
    if names.isEmpty { return try store.items(inService: allServices ? nil : global.serviceName) }
    var items: [SecretItem] = []
    for name in names {
      let identifier = try global.identifier(name)
      guard let item = try store.item(identifier) else { throw MissingSecret.failure(identifier, in: store) }
      if !items.contains(where: { $0.identifier == identifier }) { items.append(item) }
    }
    return items
  }

  private static func dotenv(_ secrets: [ExchangedSecret], _ items: [SecretItem]) throws -> SecretBytes {
    let assignments = try items.map { try EnvironmentAssignment(item: $0) }
    try EnvironmentAssignment.checkDistinct(assignments)
    let lines = try zip(assignments, secrets).map { assignment, secret in
      guard let value = Dotenv.quoted(secret.value.bytes) else {
        throw Failure.usage(
          "The secret “\(secret.identifier.account)” has a NUL in it, which no such file can hold. Use --format json."
        )
      }
      return (name: assignment.variable, value: SharedSecret(value))
    }
    let count = lines.reduce(0) { $0 + $1.name.utf8.count + $1.value.bytes.count + 2 }
    return SecretBytes(count: count) { block in
      var next = 0
      for line in lines {
        for byte in line.name.utf8 + [UInt8(ascii: "=")] {
          block[next] = byte
          next += 1
        }
        line.value.bytes.withBytes { bytes in
          for index in bytes.indices {
            block[next] = bytes[index]
            next += 1
          }
        }
        block[next] = UInt8(ascii: "\n")
        next += 1
      }
    }
  }
}
