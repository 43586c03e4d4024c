internal import ArgumentParser
internal import Coffer
internal import Glibc

/// Names of secrets for a shell that completes a command. Only where the store opens without asking anybody and
/// without stretching a passphrase; otherwise there are none, and nothing is said.
enum NameCompletion {
  /// Completes a NAME behind the options that stand on the line already. The shell itself drops what does not fit.
  static let kind = CompletionKind.custom { words, _, _ in
    names(options(in: words)).map { spelled($0, for: CompletionShell.requesting) }
  }

  /// `name` so that the shell's script takes all of it for a name: bash expands every word, commands in it
  /// included, and zsh has descriptions behind a colon.
  private static func spelled(_ name: String, for shell: CompletionShell?) -> String {
    func replacing(_ character: Character, by text: String) -> String {
      name.map { $0 == character ? text : String($0) }.joined()
    }
    return switch shell {
    case .bash?: "'" + replacing("'", by: "'\\''") + "'"
    case .zsh?: replacing(":", by: "\\:")
    default: name
    }
  }

  static func names(_ options: GlobalOptions) -> [String] {
    // Nobody who presses the Tab key should be asked for a passphrase, or wait.
    setenv("COFFER_NO_PROMPT", "1", 1)
    for variable in CofferConfiguration.keyVariables where variable.hasPrefix("COFFER_PASSPHRASE") {
      unsetenv(variable)
    }
    do {
      return try options.store().items(inService: options.serviceName).map(\.identifier.account)
        .filter { !$0.unicodeScalars.contains(where: \.isTerminalControl) }
    } catch {
      return []  // there is no place for a message, and the command itself will say it
    }
  }

  /// The global options among the words of an unfinished line.
  private static func options(in words: [String]) -> GlobalOptions {
    var options = GlobalOptions()
    (options.backend, options.vault, options.service) = (nil, nil, nil)
    var rest = words[...]
    while let word = rest.popFirst() {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = parts.count == 2 ? String(parts[1]) : rest.first
      switch parts.first {
      case "-s", "--service": options.service = value
      case "--vault": options.vault = value
      case "--backend": options.backend = value.flatMap(BackendName.init)
      default: break
      }
    }
    return options
  }
}
