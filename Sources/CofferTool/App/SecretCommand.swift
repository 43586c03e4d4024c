internal import ArgumentParser
internal import CEarlyInit
internal import Coffer
internal import CofferLibc

/// The root command, with every other command in a group of its help.
struct SecretCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "secret",
    abstract: "Keeps secrets in the desktop keyring or in an encrypted vault file.",
    discussion: help,
    groupedSubcommands: groups)

  static let groups = commands.map { CommandGroup(name: $0, subcommands: $1) }

  private static let commands: KeyValuePairs<String, [any ParsableCommand.Type]> = [
    "Secrets": [
      SetCommand.self, GetCommand.self, ListCommand.self, FindCommand.self, InfoCommand.self, MoveCommand.self,
      RemoveCommand.self, EditCommand.self, GenerateCommand.self, HistoryCommand.self, RestoreCommand.self,
      WatchCommand.self,
    ],
    "Programs": [RunCommand.self, InjectCommand.self, CheckCommand.self, AllowCommand.self],
    "Transfer": [ImportCommand.self, ExportCommand.self, CopyCommand.self],
    "Vault": [
      InitCommand.self, UnlockCommand.self, LockCommand.self, VerifyCommand.self, TrustCommand.self,
      MergeCommand.self, HistoryLimitCommand.self, KeyCommand.self, RekeyCommand.self,
    ],
    "Repository": [GitMergeDriverCommand.self, GitTextconvCommand.self],
    "Credential helper": credentialHelpers,
    "Maintenance": [DoctorCommand.self, RemoteCommand.self, CompletionsCommand.self, CompleteCommand.self],
  ]

  static let credentialHelpers: [any ParsableCommand.Type] = [
    GitCredentialCommand.self, DockerCredentialCommand.self, CargoCredentialCommand.self,
    BazelCredentialCommand.self, TerraformCredentialsCommand.self, KeyringCommand.self,
  ]

  private static let help = """
    Values go to standard output, everything else to standard error. A value is never an argument: it comes from a \
    prompt, a pipe or a file. A NAME is used verbatim, and slashes have no meaning, unless it is a reference: \
    secret://SERVICE/ACCOUNT. Write -- before a NAME that begins with a hyphen or only looks like a reference.

    Every command that uses a backend accepts these options, before or after its name:
      --backend \(BackendRegistry.providers.forms.joined(separator: "|"))
      --vault PATH|URL, --collection NAME, -s/--service SERVICE
      --max-age SPAN, --offline, for a vault at a URL
    copy has --from and --to instead of the first three. Credential helpers have only the first line.
    --quiet leaves out the messages on standard error that only inform, such as “Revealing …” and “Stored. …”; errors \
    and warnings are printed. --json prints machine-readable output where there is any. `secret --version` prints the version.

    Exit status:
    \(ExitStatus.allCases.map { "  \($0.rawValue)\t\($0.meaning)" }.joined(separator: "\n"))
    `secret run` exits with the command's own status, with 127 if the command is not found, and with 126 if it cannot \
    be started.
    """

  static func main() {
    coffer_started()
    let hardening = ProcessHardening.applied
    Environment.concealKeys()
    withExtendedLifetime(hardening) {
      var arguments: [String] = []
      do {
        try OwnProgram.runPart()
        arguments = try CommandArguments.checked()
        // Not a flag of the parser, because `get` has an option of the same name.
        if arguments == ["--version"] { return try Output.standard.line(Version.current) }
        var command = try CommandArguments.parsed(arguments)
        if !(command is CompleteCommand) { Environment.noteIgnored() }
        try command.run()
        VaultNotes.print()
        if let status = UnreadableItems.status { throw ExitCode(status) }
      } catch {
        VaultNotes.print()
        let status = report(error, arguments)
        if status != 0 { ExportFormat.printFalse(arguments) }
        CofferLibc.exit(status)
      }
    }
  }

  /// Prints the error in one line, and returns the exit status.
  private static func report(_ error: any Error, _ arguments: [String]) -> Int32 {
    if error as? SecretError == Output.closedPipe, ProcessHardening.applied.restored.contains(SIGPIPE) {
      // A reader such as head has closed the pipe. The process ends by SIGPIPE, as other programs do.
      signal(SIGPIPE, SIG_DFL)
      raise(SIGPIPE)
    }
    if let failure = Failure(error) {
      note("secret: \(finalMessage(of: failure))")
      return failure.status.rawValue
    }
    if let code = error as? ExitCode { return code.rawValue }
    if exitCode(for: error) == .success, CommandArguments.mayAskForHelp(arguments) {
      do throws(SecretError) { try Output.standard.write(fullMessage(for: error) + "\n") } catch {
        return report(error, arguments)
      }
      return ExitStatus.done.rawValue
    }
    let isMistake = exitCode(for: error) != .success
    let message = isMistake ? message(for: error) : "A group of options has one that does not exist"
    note("secret: \(CommandArguments.sentence(for: message, arguments))")
    return ExitStatus.usage.rawValue
  }
}
