internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import CofferLibc

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "export", abstract: "Write secrets in plain text, for another program or backend.",
    discussion: """
      JSON contains values and metadata, and can be imported again. The other formats have only variables, with the \
      names of secret run: github-token is GITHUB_TOKEN. shell and fish are commands, for eval "$(secret export --format \
      shell)" and secret export --format fish | source. dotenv has lines of NAME='value', and can be imported again. \
      docker has lines of NAME=value, for docker run --env-file.

      github is for a step of GitHub Actions: it appends the variables to the file that GITHUB_ENV names, for the next \
      steps. First it prints the command add-mask on standard output for each line of at least 8 bytes of each value, by \
      which the runner learns what to mask in the log. The runner shows no value of such a command.

      In a project, a format other than json writes what its file \(ProjectFile.name) declares, as secret run passes it, \
      unless names, --all or --all-services are given. Elsewhere, such a format needs one of these, or -s.

      The names of the exported secrets are first printed on standard error. A file of --output is created with mode \
      0600. Anyone who can read the output has the secrets.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup var profile: ProfileOption

  @Argument(help: "The secrets' names. Default: all secrets of the service.", completion: CompletedValue.names.kind)
  var names: [String] = []

  @Flag(help: "Export every secret of the service, where no project's file says which.")
  var all = false

  @Flag(help: "Export the secrets of all services.")
  var allServices = false

  @Option(
    help: ArgumentHelp("Leave out this secret of the service. Repeat for more.", valueName: "name"),
    completion: CompletedValue.names.kind)
  var except: [String] = []

  @Flag(help: "Leave out the secrets whose variables can change what a program runs. Not for json.")
  var skipUnsafe = false

  @Option(help: "The format: \(ExportFormat.allCases.map(\.rawValue).joined(separator: ", ")).")
  var format = ExportFormat.json

  @Option(
    name: .shortAndLong,
    path: "Write to this file, which must not exist, or as it is to a FIFO, a device, or /dev/fd/N.")
  var output: String?

  @Flag(help: "Replace an existing file, or write to a terminal.")
  var force = false

  func run() throws {
    if isatty(OutputFile.descriptor(output ?? "-") ?? -1) == 1 && !force {
      throw Failure.usage(
        "The secrets would be shown on the terminal. Use --output PATH or a pipe, or add --force to show them.")
    }
    if (all || allServices || !except.isEmpty) && !names.isEmpty {
      throw Failure.exclusive("\(all ? "--all" : allServices ? "--all-services" : "--except") and names")
    }
    let isWhole = names.isEmpty && !allServices && format != .json
    if !isWhole, !profile.profiles.isEmpty {
      throw Failure.usage("--profile excludes names, --all-services and the format json. Leave it out.")
    }
    let project = try isWhole && !all ? global.project() : nil
    if isWhole, !all, project == nil, global.service == nil {
      throw Failure.usage(
        "There is no \(ProjectFile.name) here, so nothing says which secrets to export. Give their names, -s SERVICE or --all."
      )
    }
    let variables = format == .github ? try githubVariables() : nil
    let backend = try global.open()
    let secrets = try project.map { try declared(by: $0, in: backend) } ?? stored(in: backend)
    inform("Revealing \(secrets.map { "“\($0.identifier.account)”" }.listed(most: 20)).")
    let text = try format.text(of: secrets)
    guard let variables else {
      // JSON has escapes for what a terminal would obey or hide. The other formats have none.
      return try OutputFile.write(
        text, to: output ?? "-", replacing: force, "A value",
        ", which only JSON can escape for a terminal. Use --output PATH, a pipe, or --format json.")
    }
    for secret in secrets {
      let masks = ExportFormat.masks(of: secret.value)
      if masks.isEmpty && !secret.value.isEmpty {
        note("secret: “\(secret.identifier.account)” is not masked in the log: no line of it has 8 bytes.")
      }
      try Output.standard.reveal(masks, "A value", ". Use a pipe.")
    }
    try withExtendedLifetime(variables) {
      try Output(descriptor: variables.number, name: "the file of GITHUB_ENV").write(text)
    }
  }

  /// What `run` passes in the project.
  private func declared(by project: Project, in backend: any SecretBackend) throws -> [ExchangedSecret] {
    let options = global.following(project)
    var excepted = Set(try options.identifiers(except))
    let left = excepted
    try backend.unlock()
    let secrets = try profile.variables(of: project).compactMap { variable -> ExchangedSecret? in
      switch variable.source {
      case .plain(let text):
        let identifier = try options.identifier(variable.name)
        return ExchangedSecret(identifier: identifier, value: SecretBytes(text), variable: variable.name)
      case .secret(let name, let isOptional):
        let identifier = try options.identifier(name)
        excepted.remove(identifier)
        if left.contains(identifier) { return nil }
        guard let value = try backend.lookUp(identifier) else {
          if isOptional { return nil }
          throw MissingSecret.failure(identifier, in: backend)
        }
        return ExchangedSecret(identifier: identifier, value: value, variable: variable.name)
      }
    }
    if let unknown = excepted.min() {
      throw Failure(.noSuchSecret, "\(project.path) does not declare the secret “\(unknown.account)” of --except.")
    }
    return secrets
  }

  private func stored(in backend: any SecretBackend) throws -> [ExchangedSecret] {
    if names.isEmpty { UnreadableItems.leaveOut(of: backend) }
    var secrets =
      try names.isEmpty
      ? backend.secrets(inService: allServices ? nil : global.serviceName)
      : global.identifiers(names).map(backend.existing)
    let left = try global.identifiers(except)
    if let missing = Set(left).subtracting(secrets.map(\.identifier)).min() {
      throw MissingSecret.failure(missing, in: backend)
    }
    secrets.removeAll { left.contains($0.identifier) }
    if secrets.isEmpty && UnreadableItems.status == nil {
      let place = try allServices ? "any service" : "the service “\(global.serviceName)”"
      throw Failure(.noSuchSecret, "There are no secrets to export in \(place).")
    }
    if format != .json && names.isEmpty {
      let kept = try ControllingVariables.checked(
        secrets.map { try EnvironmentAssignment(for: $0.identifier) }, skips: skipUnsafe,
        advice: "Nothing was exported. Give the names to export, or leave these out with --skip-unsafe.")
      let identifiers = Set(kept.map(\.identifier))
      secrets.removeAll { !identifiers.contains($0.identifier) }
    }
    return secrets.map { ExchangedSecret(identifier: $0.identifier, value: $0.value, metadata: $0.metadata) }
  }

  private func githubVariables() throws -> Descriptor {
    if output != nil { throw Failure.usage("--format github writes to the file of GITHUB_ENV. Leave out --output.") }
    guard let path = Environment.value("GITHUB_ENV") else {
      throw Failure(.configuration, "GITHUB_ENV is not set. Use the format github in a step of GitHub Actions.")
    }
    do throws(FileSystemError) {
      return try Descriptor(opening: path, O_WRONLY | O_APPEND)
    } catch { throw SecretError.system(error, "The file \(path) of GITHUB_ENV could not be opened") }
  }
}
