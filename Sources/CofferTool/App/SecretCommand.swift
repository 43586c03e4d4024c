internal import ArgumentParser
internal import CEarlyInit
internal import Coffer
internal import Glibc

struct SecretCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "secret",
    abstract: "Keeps secrets in the desktop's keyring or in an encrypted vault.",
    discussion: help,
    version: "0.1.0",
    subcommands: [
      InitCommand.self,
      SetCommand.self,
      GetCommand.self,
      ListCommand.self,
      RemoveCommand.self,
      InfoCommand.self,
      RunCommand.self,
      AcceptRollbackCommand.self,
      BazelCredentialCommand.self,
      CargoCredentialCommand.self,
      CompleteNamesCommand.self,
      CompletionsCommand.self,
      CopyCommand.self,
      DemoCommand.self,
      DockerCredentialCommand.self,
      DoctorCommand.self,
      EditCommand.self,
      ExportCommand.self,
      FindCommand.self,
      GenerateCommand.self,
      GitCredentialCommand.self,
      ImportCommand.self,
      InjectCommand.self,
      KeyCommand.self,
      KeyringCommand.self,
      LockCommand.self,
      MoveCommand.self,
      RekeyCommand.self,
      TerraformCredentialsCommand.self,
      UnlockCommand.self,
      VerifyCommand.self,
      WatchCommand.self,
    ]
  )

  private static let help = """
    Values go to standard output and everything else to standard error. A value is never an argument: it \
    comes from a prompt, a pipe or a file. A NAME is taken verbatim, and slashes mean nothing; write -- before \
    one that begins with a hyphen.

    These options are taken by every command that works on a store, before or after its name:
      --backend keyring|vault, --vault PATH, -s/--service SERVICE, and --json where there is something to structure.

    Exit status:
    \(ExitStatus.allCases.map { "  \($0.rawValue)\t\($0.meaning)" }.joined(separator: "\n"))
    `secret run` gives the command's own status, 127 where it is not found and 126 where it cannot be started.
    """

  static func main() {
    coffer_started()
    let guards = ProcessHardening.raised
    withExtendedLifetime(guards) {
      var arguments: [String] = []
      do {
        arguments = try CommandArguments.checked()
        var command = try parseAsRoot(arguments)
        try command.run()
      } catch {
        Glibc.exit(report(error, arguments))
      }
    }
  }

  /// Says what went wrong in one line, and returns the status to exit with.
  private static func report(_ error: any Error, _ arguments: [String]) -> Int32 {
    switch error {
    case let error as SecretError:
      note("secret: \(error)")
      return ExitStatus(error.code).rawValue
    case let failure as Failure:
      if !failure.message.isEmpty { note("secret: \(failure.message)") }
      return failure.status.rawValue
    case let code as ExitCode: return code.rawValue
    default: break
    }
    if exitCode(for: error) == .success {  // help or the version was asked for
      do throws(SecretError) {
        try Output.standard.write(fullMessage(for: error) + "\n")
        return ExitStatus.done.rawValue
      } catch {
        note("secret: \(error)")
        return ExitStatus(error.code).rawValue
      }
    }
    note("secret: \(CommandArguments.sentence(for: message(for: error), arguments))")
    return ExitStatus.usage.rawValue
  }
}
