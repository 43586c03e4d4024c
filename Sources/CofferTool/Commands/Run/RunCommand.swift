internal import ArgumentParser
internal import Coffer
internal import CofferSystem

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "run", abstract: "Run a command with secrets in its environment.",
    discussion: """
      Reads all secrets first; if one does not exist, the command is not run. The command then replaces this process, \
      so that signals and the exit status are its own. With --file, --restart and --redact it is a child of this \
      process, which forwards signals and ends as the command ends. The variables that open the vault are removed from \
      its environment. In a project, the command gets the variables that the file \(ProjectFile.name) declares, and \
      those of --set, --file and --env-file. Elsewhere, it gets only those of these three options; or, with --all, -s \
      or --prefix, every secret of the service: github-token in GITHUB_TOKEN. Then a variable that can change what a \
      program runs, such as PATH or LD_PRELOAD, is an error, because anybody who can name a secret could choose it. \
      Pass it with --set, or leave it out with --skip-unsafe. The command is found with the PATH of secret itself.

      An --env-file has lines NAME=VALUE, with quotes and comments; syntax that some readers would expand is rejected. \
      A VALUE that is a reference, secret://SERVICE/ACCOUNT, is replaced by the secret. Later files override earlier \
      ones, and --set overrides all files.

      \(ProjectFile.name) is searched from the working directory up to the top of the git work tree. It has lines \
      VARIABLE = "NAME" below [variables] and [profiles.PROFILE.variables], and a line vault = "PATH" or service = \
      "SERVICE". With --backend, --vault or --collection, only its line redact = true counts. See also secret check and secret allow.

      With --file, the variable holds the path of a file in memory that only you can read. It is overwritten and removed \
      when the command has ended. If this process is killed with SIGKILL, it stays, and secret doctor names it.

      With --restart, the command is started again when a value that it was given changes in the store. First, it gets \
      SIGTERM, and SIGKILL after 10 seconds; programs that it has started get no signal. If a secret cannot be read \
      then, the command runs on with its values, and a message says so.

      With --redact, [VAR] replaces secrets in the command's standard output and standard error: each value passed to \
      it, each line of a value with at least \(PatternWriter.shortestLine) bytes, and both as base64, hexadecimal, \
      percent-encoding, JSON or a shell word. If one of its standard streams is a terminal, the command gets a \
      terminal of its own, and everything that is shown there is redacted, what you type included. Not redacted are \
      values shorter than \(OutputRedactor.minimumLength) bytes, other parts of values, values that a program splits \
      when it draws the screen, other encodings, and output to files. After the first 64 KiB of a value, only its \
      lines are redacted, as they are. What may be the beginning of a value is held back until more output follows. At \
      a pause, the part with its first two bytes is shown, but at most half of the value. Background processes of the \
      command that write on after its end are redacted as well.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup var profile: ProfileOption

  @Option(
    name: .customLong("set"),
    assignment: "Pass the secret NAME, or secret://SERVICE/ACCOUNT, in the variable VAR. Repeat for more.")
  var assignments: [String] = []

  @Option(
    name: .customLong("file"),
    assignment:
      "Pass the path of a file in memory that holds the secret in the variable VAR. Repeat for more.")
  var files: [String] = []

  @Option(path: "Pass the variables of a dotenv file, with references resolved. Repeat for more.")
  var envFile: [String] = []

  @Flag(help: "Pass every secret of the service, in variables named after them in upper case.")
  var all = false

  @Option(help: ArgumentHelp("Pass every secret of the service, in variables with this prefix.", valueName: "text"))
  var prefix = ""

  @Flag(help: "Leave out the secrets whose variables can change what a program runs.")
  var skipUnsafe = false

  @Flag(help: ArgumentHelp("Remove every other variable except \(SecretEnvironment.pristine.joined(separator: ", "))."))
  var pristine = false

  @Flag(help: "Redact the values in the command's output.")
  var redact = false

  @Flag(help: "Restart the command when a secret changes that it was given.")
  var restart = false

  @Argument(parsing: .postTerminator, help: "The command and its arguments, after --.")
  var command: [String]

  func run() throws {
    guard let program = command.first else { throw Failure.usage("There is no command to run. Write it after --.") }
    let project = try global.project()
    let declared = try profile.variables(of: project)
    let isRedacted = redact || Self.projectRedacts
    let backend = try global.open()
    // Begins before the first read, so that no change between the two is missed.
    let changes = restart ? try backend.observable().changes() : nil
    let secrets = try environment(declared, of: project, from: backend)
    VaultNotes.print()
    // The last arguments of this process, byte for byte: ArgumentOrder does not move what follows `--`.
    let arguments = CommandLine.unsafeArgv + (Int(CommandLine.argc) - command.count)
    guard let name = arguments[0] else { return }
    let file: ProgramFile
    do throws(FileSystemError) { file = try ProgramFile(named: name) } catch {
      throw ForegroundChild.notStarted(program, error.number)
    }
    BackendConfiguration.current().hideDescriptors()
    if restart || secrets.hasFiles {
      let child = ChildCommand(file, arguments, isPristine: pristine, isRedacted: isRedacted)
      throw ForegroundChild.end(as: try child.run(secrets, of: backend, restartedAfter: changes))
    }
    guard isRedacted else {
      let environment = try secrets.environment(isPristine: pristine)
      ProcessHardening.applied.lift()
      let failure = environment.withVector { file.execute(arguments, environment: $0) }
      throw ForegroundChild.notStarted(program, failure)
    }
    let launch = try secrets.launch(isPristine: pristine)
    ProcessHardening.applied.lift()
    throw ForegroundChild.notStarted("secret", OwnProgram.execute(.relay, ["\(launch)"], file, arguments))
  }

  /// Whether the project's file asks for redaction. This counts even if an option selects another store than the file
  /// does. If the file cannot be read, the answer is yes, because it may ask for it.
  private static var projectRedacts: Bool {
    do throws(SecretError) { return try Project.current()?.file.redacts ?? false } catch { return true }
  }

  /// Reads the values for the command's environment. Throws if a secret does not exist.
  private func environment(
    _ declared: [ProjectFile.Variable], of project: Project?, from backend: any SecretBackend
  ) throws -> SecretEnvironment {
    let options = global.following(project)
    var chosen = try assignments.map { try EnvironmentAssignment($0, options.identifier) }
    chosen += try files.map { try EnvironmentAssignment($0, isFile: true, options.identifier) }
    try EnvironmentAssignment.checkDistinct(chosen)
    // If several sources set a variable, the first counts: --set and --file, then --env-file, the project, --all.
    var named = Set(chosen.map(\.variable))
    var environment = SecretEnvironment()

    var written: [String: String] = [:]
    for path in envFile {
      for entry in try Dotenv.entries(in: ValueInput.read(file: path), of: path) {
        do throws(SecretError) { written[entry.name] = try entry.value.string() } catch {
          throw Failure(
            .damaged,
            "The value on line \(entry.line) of \(path) is not UTF-8 text. Store it as a secret, and use --set."
          )
        }
      }
    }
    for (name, value) in written.sorted(by: { $0.key < $1.key }) where named.insert(name).inserted {
      if let identifier = try SecretReference.identifier(value) {
        chosen.append(EnvironmentAssignment(variable: name, identifier: identifier))
      } else {
        environment.addPlain(value, as: name)
      }
    }

    var optional: Set<String> = []
    for variable in declared where named.insert(variable.name).inserted {
      switch variable.source {
      case .plain(let text): environment.addPlain(text, as: variable.name)
      case .secret(let name, let isOptional):
        if isOptional { optional.insert(variable.name) }
        let identifier = try options.identifier(name)
        chosen.append(EnvironmentAssignment(variable: variable.name, identifier: identifier))
      }
    }

    if let project, named.isEmpty, envFile.isEmpty, !all {
      throw Failure.usage(
        "\(project.path) declares no variables. Declare some below [variables], or use --set or --all.")
    }
    let isUnnamed = project == nil && assignments.isEmpty && files.isEmpty && envFile.isEmpty
    if isUnnamed && !all && global.service == nil && prefix.isEmpty { throw try unnamed(in: backend) }
    if all || isUnnamed {
      let service = try options.serviceName
      let identifiers = try backend.identifiers(inService: service)
      if identifiers.isEmpty {
        throw Failure(.noSuchSecret, "There are no secrets in the service “\(service)”, and the command was not run.")
      }
      let others = try ControllingVariables.checked(
        identifiers.map { try EnvironmentAssignment(for: $0, prefix: prefix) }
          .filter { !named.contains($0.variable) },
        skips: skipUnsafe,
        advice:
          "The command was not run. Pass one with --set VAR=NAME, or leave all of them out with --skip-unsafe."
      )
      try EnvironmentAssignment.checkDistinct(others)
      chosen += others
    }

    // A project with a vault sets variables only for a user who has the vault's key, even if none of them is a secret.
    if project != nil, chosen.isEmpty { try backend.unlock() }
    let together = all || isUnnamed ? try options.serviceName : nil
    let values = try backend.secrets(chosen.map(\.identifier), together: together)
    Expiry.warn(of: values.values.map(\.item))
    VaultNotes.noteConflicts(among: values.values)
    for assignment in chosen {
      guard let value = values[assignment.identifier]?.value else {
        if optional.contains(assignment.variable) { continue }
        throw MissingSecret.failure(assignment.identifier, in: backend)
      }
      try environment.add(value, as: assignment)
    }
    return environment
  }

  /// The failure if neither a project nor an option says which secrets the command is to get. All of them might go to
  /// whoever wrote the files of this directory. Prints the lines of a project's file that passes the same as --all.
  private func unnamed(in backend: any SecretBackend) throws -> any Error {
    let service = try global.serviceName
    var (count, lines): (Int, [String: String]) = (0, [:])
    do {
      let all = try backend.withoutPrompts.identifiers(inService: service)
      count = all.count
      // Only those that such a file can declare.
      for identifier in all where !identifier.account.hasPrefix(SecretReference.scheme) {
        let line = ProjectFile.quoted(identifier.account)
        guard !line.contains("\\u"), let variable = try? EnvironmentAssignment(for: identifier).variable,
          !ControllingVariables.contains(variable, isDerived: false)
        else { continue }
        lines[variable] = lines[variable] ?? line
      }
    } catch {}  // the message is printed without them
    let above =
      try Project.unfollowed().map {
        " \($0) above is not followed, because this is a repository of its own."
      } ?? ""
    note(
      """
      secret: There is no \(ProjectFile.name) here, so nothing says which secrets the command is to get, and it was not run. \
      Use --set VAR=NAME, --file VAR=NAME, --env-file PATH, -s SERVICE, --prefix TEXT or --all, which would pass \
      \(count) of the service “\(service)”.\(above)
      """)
    guard !lines.isEmpty else { return ExitCode(ExitStatus.usage.rawValue) }
    note("To declare them for this directory, write a file \(ProjectFile.name), and then run secret allow:")
    if service != SecretReference.defaultService { note("service = \(ProjectFile.quoted(service))") }
    note("[variables]")
    for (variable, line) in lines.sorted(by: { $0.key < $1.key }) { note("\(variable) = \(line)") }
    return ExitCode(ExitStatus.usage.rawValue)
  }
}
