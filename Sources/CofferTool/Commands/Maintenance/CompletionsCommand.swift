internal import ArgumentParser

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Print a shell script that completes commands, options and names.",
    discussion: """
      Install it with one of these commands:
        secret completions bash > ~/.local/share/bash-completion/completions/secret
        secret completions zsh > DIRECTORY/_secret, with a DIRECTORY of fpath
        secret completions fish > ~/.config/fish/completions/secret.fish
      Names are completed if the backend opens without a prompt.
      """
  )

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish

    var parserShell: CompletionShell {
      switch self {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    }
  }

  @Argument(help: "bash, zsh, or fish.")
  var shell: Shell

  func run() throws {
    try Output.standard.write(SecretCommand.completionScript(for: shell.parserShell) + "\n")
  }
}
