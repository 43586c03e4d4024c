internal import ArgumentParser
internal import Coffer

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "export", abstract: "Write secrets in plain text, for another program or backend.",
    discussion: """
      JSON contains values and metadata, and can be imported again. dotenv has only lines of NAME='value', with the \
      variable names of secret run: github-token is GITHUB_TOKEN. The names of the exported secrets are first printed \
      on standard error. A file is created with mode 0600. Anyone who can read the output has the secrets.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(
    help: "The secrets' names. Default: all secrets of the service.", completion: CompletedValue.names.kind)
  var names: [String] = []

  @Flag(help: "Export the secrets of all services.")
  var allServices = false

  @Flag(help: "For dotenv, leave out the secrets whose variables can change what a program runs.")
  var skipUnsafe = false

  @Option(help: "json or dotenv.")
  var format = ExchangeFormat.json

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Write to this file, which must not exist.", valueName: "path"), completion: .file())
  var output: String?

  @Flag(help: "Replace an existing file, or write to a terminal.")
  var force = false

  func run() throws {
    if output == nil && Output.standard.isTerminal && !force {
      throw Failure.usage(
        "The secrets would be shown on the terminal. Use --output PATH or a pipe, or add --force to show them."
      )
    }
    if allServices && !names.isEmpty {
      throw Failure.usage("--all-services and names exclude each other. Use one of them.")
    }
    let backend = try global.open()
    if names.isEmpty { UnreadableItems.leaveOut(of: backend) }
    var items = try selected(from: backend)
    if items.isEmpty && UnreadableItems.status == nil {
      let place = try allServices ? "any service" : "the service “\(global.serviceName)”"
      throw Failure(.noSuchSecret, "There are no secrets to export in \(place).")
    }
    if format == .dotenv && names.isEmpty {
      let kept = try ControllingVariables.checked(
        items.map { try EnvironmentAssignment(for: $0.identifier) }, skips: skipUnsafe,
        advice: "Nothing was exported. Give the names to export, or leave these out with --skip-unsafe.")
      let identifiers = Set(kept.map(\.identifier))
      items.removeAll { !identifiers.contains($0.identifier) }
    }
    inform("Revealing \(ImportCommand.listed(items.map(\.identifier.account))).")
    let values = try backend.lookUp(items.map(\.identifier))
    let secrets = try items.compactMap { item -> ExchangedSecret? in
      guard let value = values[item.identifier] else {
        if UnreadableItems.status != nil { return nil }
        throw MissingSecret.failure(item.identifier, in: backend)
      }
      return ExchangedSecret(identifier: item.identifier, value: value, metadata: item.metadata)
    }
    let text =
      switch format {
      case .json: try ExchangeFile(secrets).text()
      case .dotenv: try Self.dotenv(secrets)
      }
    if let output {
      try FileOutput.write(text, to: output, replacing: force)
    } else {
      // JSON has escapes for what a terminal would obey or hide. dotenv has none.
      try Output.standard.reveal(
        text,
        refusal: """
          A value contains control characters, invisible characters or binary data, which a dotenv file cannot escape \
          for a terminal. Use --output PATH, a pipe, or --format json.
          """)
    }
  }

  private func selected(from backend: any SecretBackend) throws -> [SecretItem] {
    if names.isEmpty {
      let service = try allServices ? nil : global.serviceName
      // A keyring needs much longer for metadata than for names, and dotenv has none.
      if format == .dotenv {
        return try backend.identifiers(inService: service).map {
          SecretItem(identifier: $0, metadata: SecretMetadata())
        }
      }
      return try backend.items(inService: service)
    }
    return try global.identifiers(names).map(backend.existingItem)
  }

  private static func dotenv(_ secrets: [ExchangedSecret]) throws -> SecretBytes {
    let assignments = try secrets.map { try EnvironmentAssignment(for: $0.identifier) }
    try EnvironmentAssignment.checkDistinct(assignments)
    let lines = try zip(assignments, secrets).map { assignment, secret in
      guard let value = Dotenv.quoted(secret.value.bytes) else {
        throw Failure.usage(
          "The secret “\(secret.identifier.account)” contains a NUL, which a dotenv file cannot hold. Use --format json."
        )
      }
      return (name: assignment.variable, value: SharedSecret(value))
    }
    let count = lines.reduce(0) { $0 + $1.name.utf8.count + $1.value.bytes.count + 2 }
    return SecretWriter.bytes(capacity: count) { writer in
      for line in lines {
        writer.append("\(line.name)=")
        writer.append(line.value.bytes)
        writer.append("\n")
      }
    }
  }
}
