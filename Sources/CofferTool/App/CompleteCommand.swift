internal import ArgumentParser
internal import CofferLibc

struct CompleteCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "complete",
    abstract: "Print the words that complete a command line, for the script that completions prints.",
    shouldDisplay: false)

  @Argument(help: "bash, zsh, or fish.")
  var shell: CompletionsCommand.Shell

  @Argument(parsing: .postTerminator, help: "The line as the shell's script passes it.")
  var words: [String] = []

  /// Prints nothing but the answer, and succeeds in any case: a shell shows messages in the middle of a line.
  func run() {
    signal(SIGALRM) { _ in _exit(0) }
    alarm(5)  // seconds: a slow keyring must not block the shell
    redirectToNullDevice([STDERR_FILENO])
    let answer = CompletionAnswer(root: CommandDescription(SecretCommand.self, optionsLike: ListCommand.self))
    do {
      let (records, separator): ([String], String) =
        switch shell {
        case .bash:
          (words.count == 3 ? answer.bash(line: words[0], end: words[1], type: words[2]) : [], "\0")
        case .zsh: (answer.zsh(words), "\0")
        case .fish: (answer.fish(words), "\n")
        }
      try Output.standard.write(records.map { $0 + separator }.joined())
    } catch {}
  }
}
