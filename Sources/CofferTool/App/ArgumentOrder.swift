/// Lets global options stand before the subcommand as well as after it, by moving those in front behind it.
///
/// Every subcommand declares the global options it takes, so that its help shows them; the parser itself
/// takes options only behind the command that declares them.
enum ArgumentOrder {
  private static let optionsWithValue: Set = ["--backend", "--vault", "--service", "-s"]
  private static let flags: Set = ["--json"]

  /// `arguments`, without the program's name, in the order that the parser wants. What follows the
  /// subcommand's name is never touched. `path` gives how many of the words that are not options, from the
  /// first on, name the command.
  static func arranged(
    _ arguments: [String],
    commandLength: (ArraySlice<String>) -> Int
  ) -> [String] {
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      let name = argument.prefix { $0 != "=" }
      if optionsWithValue.contains(argument) {
        index += 2
      } else if flags.contains(argument) || (name.hasPrefix("--") && optionsWithValue.contains(String(name)))
        || isJoinedService(argument)
      {
        index += 1
      } else {
        break
      }
    }
    guard index > 0, index < arguments.count, !arguments[index].hasPrefix("-") else { return arguments }
    let rest = arguments[index...]
    let length = commandLength(rest)
    return Array(rest.prefix(length)) + arguments[..<index] + rest.dropFirst(length)
  }

  /// `-sSERVICE`.
  private static func isJoinedService(_ argument: String) -> Bool {
    argument.hasPrefix("-s") && argument.utf8.count > 2
  }
}
