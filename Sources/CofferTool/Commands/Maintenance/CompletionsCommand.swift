internal import ArgumentParser

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "completions", abstract: "Print a shell script that completes commands, options and names.",
    discussion: """
      Install it with one of these commands:
        secret completions bash > ~/.local/share/bash-completion/completions/secret
        secret completions zsh > DIRECTORY/_secret, with a DIRECTORY of fpath
        secret completions fish > ~/.config/fish/completions/secret.fish
      At each Tab, the script runs the secret on PATH. Names are completed if the backend opens without a prompt.
      """)

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish
  }

  @Argument(help: "bash, zsh, or fish.")
  var shell: Shell

  func run() throws {
    let script =
      switch shell {
      case .bash: CompletionScript.bash
      case .zsh: CompletionScript.zsh
      case .fish: CompletionScript.fish
      }
    try Output.standard.write(script)
  }
}
