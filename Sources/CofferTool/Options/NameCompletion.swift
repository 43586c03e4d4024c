internal import ArgumentParser
internal import Coffer

/// The names of secrets, for shell completion. There are none unless the backend opens without a prompt and
/// without stretching a passphrase.
enum NameCompletion {
  /// Completes a NAME, with the options that precede it on the line. The shell filters the names by what was
  /// typed.
  static let kind = CompletionKind.custom { words, _, _ in
    let (options, service) = options(in: words)
    return names(in: service, of: options).map { quoted($0, for: CompletionShell.requesting) }
  }

  /// `name` in the form in which the shell's completion script treats all of it as text: bash expands each
  /// word, including command substitutions, and zsh separates a description with a colon.
  private static func quoted(_ name: String, for shell: CompletionShell?) -> String {
    func replacing(_ character: Character, by text: String) -> String {
      name.map { $0 == character ? text : String($0) }.joined()
    }
    return switch shell {
    case .bash?: "'" + replacing("'", by: "'\\''") + "'"
    case .zsh?: replacing(":", by: "\\:")
    default: name
    }
  }

  /// The names in `service`, without those that contain control characters. Empty if the backend cannot be
  /// opened.
  static func names(in service: String, of options: BackendOptions) -> [String] {
    do {
      // The Tab key must never cause a prompt or a delay.
      let backend = try options.open(CofferConfiguration.current().unattended)
      return try backend.items(inService: service).map(\.identifier.account)
        .filter { !$0.unicodeScalars.contains(where: \.isUnsafeOnTerminal) }
    } catch {
      return []  // a completion cannot show a message; the command itself reports the error
    }
  }

  /// The global options among the words of an unfinished line.
  private static func options(in words: [String]) -> (BackendOptions, service: String) {
    var global = GlobalOptions()
    global.service = nil
    var options = BackendOptions(backend: nil)
    var rest = words[...]
    while let word = rest.popFirst() {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = parts.count == 2 ? String(parts[1]) : rest.first
      switch parts.first {
      case "-s", "--service": global.service = value
      case "--vault": options.vault = value
      case "--backend": options.backend = value.map { BackendName(rawValue: $0) }
      default: break
      }
    }
    return (options, global.serviceName)
  }
}
