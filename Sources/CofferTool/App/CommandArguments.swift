internal import ArgumentParser

/// Checks the arguments of this process and words the argument parser's errors.
enum CommandArguments {
  /// Returns the arguments in the order that the parser requires. Throws a usage failure if an argument is
  /// not UTF-8, because its repaired form could name another secret, or if the command does not exist.
  static func checked() throws(Failure) -> [String] {
    let arguments = Array(CommandLine.arguments.dropFirst())
    // `run` passes everything after `--` to its command byte for byte.
    let terminator = arguments.contains("run") ? arguments.firstIndex(of: "--") : nil
    for index in 0..<(terminator ?? arguments.count) {
      guard let raw = CommandLine.unsafeArgv[index + 1], String(validatingCString: raw) != nil else {
        throw .usage("Argument \(index + 1) is not valid UTF-8. Names and paths must be UTF-8.")
      }
    }
    let words = InvocationName.words(startedAs: CommandLine.arguments.first ?? "", first: arguments.first)
    let arranged = ArgumentOrder.arranged(words + arguments, commandLength: commandLength)
    if let first = arranged.first, !first.hasPrefix("-"), first != "help",
      !names(of: SecretCommand.self).contains(first)
    {
      let near = MissingSecret.nearest(to: first, among: names(of: SecretCommand.self))
      let suggestion = near.map { " Did you mean “\($0)”?" } ?? ""
      throw .usage("There is no command “\(first)”.\(suggestion) See secret --help.")
    }
    if arranged.count > 1, !arranged[1].hasPrefix("-"),
      let command = SecretCommand.configuration.subcommands.first(where: { $0._commandName == arranged[0] }),
      !names(of: command).isEmpty, !names(of: command).contains(arranged[1])
    {
      let all = names(of: command).joined(separator: ", ")
      throw .usage("There is no command “\(arranged[0]) \(arranged[1])”. Use one of: \(all).")
    }
    return arranged
  }

  /// The number of words that name the command: one, or two for a command with subcommands.
  private static func commandLength(_ words: ArraySlice<String>) -> Int {
    var length = 0
    var subcommands = SecretCommand.configuration.subcommands
    for word in words {
      guard let command = subcommands.first(where: { $0._commandName == word }) else { break }
      length += 1
      subcommands = command.configuration.subcommands
    }
    return max(length, 1)
  }

  private static func names(of command: any ParsableCommand.Type) -> [String] {
    command.configuration.subcommands.map { $0._commandName }
  }

  /// Returns the parser's message as a sentence. Replaces a message that would repeat unexpected arguments,
  /// because one of them may be a value.
  static func sentence(for message: String, _ arguments: [String]) -> String {
    var text = message.split(separator: "\n").joined(separator: " ")
    if text.contains("nexpected argument") { text = "There are more arguments than the command takes." }
    if let last = text.last, !".?!".contains(last) { text += "." }
    let command = arguments.first.map { names(of: SecretCommand.self).contains($0) ? " \($0)" : "" } ?? ""
    return "\(text) See secret\(command) --help."
  }
}
