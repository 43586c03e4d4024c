internal import ArgumentParser

/// Checks the arguments of this process and words the argument parser's errors.
enum CommandArguments {
  /// Returns the arguments in the order that the parser requires. Throws a usage failure if an argument is not UTF-8,
  /// because its repaired form could name another secret, or if the command does not exist.
  static func checked() throws(Failure) -> [String] {
    let arguments = Array(CommandLine.arguments.dropFirst())
    let words = leadingWords(startedAs: CommandLine.arguments.first ?? "", first: arguments.first)
    let arranged = ArgumentOrder.arranged(words + arguments) { max(Self.command(in: $0).length, 1) }
    let named = arranged.dropFirst(arranged.first == "help" ? 1 : 0)
    let (command, length) = command(in: named)
    // `run` passes everything after `--` to its command byte for byte.
    let terminator = arguments.firstIndex(of: "--") ?? arguments.count
    let isRun = command == RunCommand.self
    for index in 0..<(isRun ? terminator : arguments.count) {
      guard let raw = CommandLine.unsafeArgv[index + 1], String(validatingCString: raw) != nil else {
        throw .usage("Argument \(index + 1) is not valid UTF-8. Names and paths must be UTF-8.")
      }
    }
    if !isRun { VerbatimNames.are(arguments.dropFirst(terminator + 1)) }
    if let word = named.dropFirst(length).first, !word.hasPrefix("-"), !names(of: command).isEmpty {
      if length > 0 {
        let all = names(of: command).joined(separator: ", ")
        throw .usage("There is no command “\(named[named.startIndex]) \(word)”. Use one of: \(all).")
      }
      if word != "help" {
        let near = MissingSecret.nearest(to: word, among: names(of: command))
        let suggestion = near.map { " Did you mean “\($0)”?" } ?? ""
        throw .usage("There is no command “\(word)”.\(suggestion) See secret --help.")
      }
    }
    return arranged
  }

  /// Returns the words to put before the arguments of a process that was started as `path`: the name of the command
  /// that the link to `secret` selects by its name, or nothing. `first` is the first argument.
  private static func leadingWords(startedAs path: String, first: String?) -> [String] {
    // cargo runs the configured program with this as its only argument.
    if first == CargoCredentialCommand.mark { return [CargoCredentialCommand._commandName] }
    let name = path.split(separator: "/").last ?? ""
    if name == KeyringCommand._commandName { return [KeyringCommand._commandName] }
    return SecretCommand.credentialHelpers.map { $0._commandName }.filter { name == "\($0)-secret" }
  }

  /// Parses the arguments with the command that the first words name. From the root command, the parser would examine
  /// the declarations of every command.
  static func parsed(_ arguments: [String]) throws -> any ParsableCommand {
    let (command, length) = command(in: arguments[...])
    return try command.parseAsRoot(Array(arguments.dropFirst(length)))
  }

  /// The command that the first words name, and the number of these words: 0 to 2.
  private static func command(in words: ArraySlice<String>) -> (any ParsableCommand.Type, length: Int) {
    var (command, length): (any ParsableCommand.Type, Int) = (SecretCommand.self, 0)
    for word in words {
      guard let next = subcommands(of: command).first(where: { $0._commandName == word }) else { break }
      (command, length) = (next, length + 1)
    }
    return (command, length)
  }

  private static func names(of command: any ParsableCommand.Type) -> [String] {
    subcommands(of: command).map { $0._commandName }
  }

  /// The commands below `command`. Does not build the help text of the root command, which no other command needs.
  private static func subcommands(of command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
    if command == SecretCommand.self { return SecretCommand.groups.flatMap(\.subcommands) }
    return command.configuration.subcommands
  }

  /// Whether the help that the parser wants to print was asked for. The parser takes every `h` in a group of letters
  /// such as `-path` for `-h`.
  static func mayAskForHelp(_ arguments: [String]) -> Bool {
    !Set(arguments).isDisjoint(with: ["help", "-h", "--help"])
      || !arguments.contains { $0.hasPrefix("-") && !$0.hasPrefix("--") && !$0.hasPrefix("-s") && $0.contains("h") }
  }

  /// Returns the parser's message as a sentence. Leaves out unexpected arguments, because one of them may be a value.
  static func sentence(for message: String, _ arguments: [String]) -> String {
    var text = message.split(separator: "\n").joined(separator: " ")
    if let end = text.firstRange(of: "does not take any value")?.upperBound { text = String(text[..<end]) }
    if text.contains("nexpected argument") { text = "There are more arguments than the command takes." }
    if let last = text.last, !".?!".contains(last) { text += "." }
    let words = arguments.prefix(command(in: arguments[...]).length)
    return "\(text) See \((["secret"] + words).joined(separator: " ")) --help."
  }
}
