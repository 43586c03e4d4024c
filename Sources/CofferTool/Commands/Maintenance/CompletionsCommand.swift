internal import ArgumentParser

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Print a script that completes commands, options and names in a shell.",
    discussion: """
      bash: secret completions bash > ~/.local/share/bash-completion/completions/secret. zsh: … zsh > a directory of \
      fpath/_secret. fish: … fish > ~/.config/fish/completions/secret.fish. Names are completed where the store opens \
      without asking.
      """
  )

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish

    var parsers: CompletionShell {
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
    try Output.standard.write(SecretCommand.completionScript(for: shell.parsers) + "\n")
  }
}
