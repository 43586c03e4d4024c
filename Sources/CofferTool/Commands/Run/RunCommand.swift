internal import ArgumentParser
internal import Coffer
internal import Glibc

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Run a command with secrets in its environment.",
    discussion: """
      All secrets are read first; if one is missing, nothing is run. Then the command takes this process's place, \
      so that signals and the exit status are its own. The variables that open the vault are taken out of its \
      environment. Where nothing is named, every secret of the service is given, as with --all: github-token as \
      GITHUB_TOKEN.

      A file of --env-file has lines NAME=VALUE, with quotes and comments as usual; what some readers would \
      expand is refused. A VALUE that is a reference, secret://SERVICE/ACCOUNT, stands for the secret. Later files go before earlier ones, and \
      --set before all.

      With --file the variable holds the path of a file in memory, which the command and what inherits its open \
      files can read, and which is gone with them.

      With --redact the command runs as a child, and what it prints on standard output and standard error is passed \
      on with each value it was given, and the value's base64, as [VAR]. Values of fewer than \
      \(OutputRedactor.minimumLength) bytes are not masked, nor parts of values, other encodings, and what it writes \
      to files or to the terminal device. What may be the beginning of a value is shown when more has come.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    name: .customLong("set"),
    parsing: .singleValue,
    help: ArgumentHelp(
      "Give the secret NAME, or secret://SERVICE/ACCOUNT, in the variable VAR; may be given several times.",
      valueName: "var=name"
    )
  )
  var assignments: [String] = []

  @Option(
    name: .customLong("file"),
    parsing: .singleValue,
    help: ArgumentHelp(
      "Give the path of a file in memory with the secret in the variable VAR; may be given several times.",
      valueName: "var=name"
    )
  )
  var files: [String] = []

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Give the variables of a dotenv file, its references resolved; may be given several times.",
      valueName: "path"
    )
  )
  var envFile: [String] = []

  @Flag(help: "Give every secret of the service, in variables of their names in upper case.")
  var all = false

  @Option(help: ArgumentHelp("What the variables of --all begin with.", valueName: "text"))
  var prefix = ""

  @Flag(
    help: ArgumentHelp(
      "Give nothing else but \(SecretEnvironment.pristine.joined(separator: ", ")) of the environment."
    )
  )
  var pristine = false

  @Flag(help: "Mask the values in what the command prints.")
  var redact = false

  @Argument(parsing: .postTerminator, help: "The command and its arguments, after --.")
  var command: [String]

  func run() throws {
    guard let program = command.first else {
      throw Failure.usage("There is no command to run. Write it after --.")
    }
    let store = try global.store()
    let environment = try gather(from: store)
    let (patterns, unmasked) = (environment.patterns, environment.unmasked)
    // Nothing ever moves what follows `--`: it is the end of this process's own arguments, byte for byte.
    let arguments = CommandLine.unsafeArgv + (Int(CommandLine.argc) - command.count)
    try environment.apply(isPristine: pristine)
    guard redact else { throw Self.replaceProcess(with: program, arguments) }

    if !unmasked.isEmpty {
      note(
        "secret: Too short to be masked, and not masked: \(unmasked.joined(separator: ", "))."
      )
    }
    let child = try ForegroundChild(arguments, streams: try OutputRelay.outputs(masking: patterns))
    throw ForegroundChild.end(as: try child.wait())
  }

  /// Reads all that the command is to get. Throws where any of it is missing.
  private func gather(from store: any SecretBackend) throws -> SecretEnvironment {
    var chosen = try assignments.map { try EnvironmentAssignment($0, global) }
    let inFiles = try files.map { try EnvironmentAssignment($0, of: "--file", global) }
    try EnvironmentAssignment.checkDistinct(chosen + inFiles)
    // What was set by name goes before what a file says, and that before what comes by the dozen.
    var named = Set((chosen + inFiles).map(\.variable))
    var environment = SecretEnvironment()

    var written: [String: String] = [:]
    for path in envFile {
      for entry in try Dotenv.entries(in: ValueInput.read(file: path), of: path) {
        do throws(SecretError) { written[entry.name] = try entry.value.bytes.string() } catch {
          throw Failure(.damaged, "\(path), line \(entry.line): the value is not UTF-8 text.")
        }
      }
    }
    for (name, value) in written.sorted(by: { $0.key < $1.key }) where named.insert(name).inserted {
      if let reference = try SecretReference(value) {
        chosen.append(EnvironmentAssignment(variable: name, identifier: reference.identifier))
      } else {
        environment.addPlain(value, as: name)
      }
    }

    if all || (assignments.isEmpty && files.isEmpty && envFile.isEmpty) {
      let items = try store.items(inService: global.serviceName)
      if items.isEmpty {
        throw Failure(
          .noSuchSecret,
          "There are no secrets in the service “\(global.serviceName)”, and nothing was run."
        )
      }
      let others = try items.map { try EnvironmentAssignment(item: $0, prefix: prefix) }
        .filter { !named.contains($0.variable) }
      try EnvironmentAssignment.checkDistinct(others)
      chosen += others
    }

    for assignment in chosen {
      try environment.add(try Self.value(of: assignment.identifier, in: store), as: assignment)
    }
    for assignment in inFiles {
      try environment.addFile(try Self.value(of: assignment.identifier, in: store), as: assignment)
    }
    return environment
  }

  private static func value(
    of identifier: SecretIdentifier,
    in store: any SecretBackend
  ) throws -> SecretBytes {
    guard let value = try store.lookUp(identifier) else {
      throw MissingSecret.failure(identifier, in: store)
    }
    return value
  }

  /// Executes the command with its arguments byte for byte as they came, and returns only what prevented it.
  private static func replaceProcess(
    with program: String,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  ) -> any Error {
    ProcessHardening.raised.lower()
    if let file = arguments[0] { execvp(file, arguments) }
    let code = errno
    note("secret: The command “\(program)” could not be started: \(systemMessage(code)).")
    return ExitCode(code == ENOENT ? 127 : 126)
  }
}
