/// Moves global options that precede the subcommand behind it.
///
/// Each subcommand declares the global options that it accepts, so that its help and its shell completion list them.
/// The argument parser accepts an option only after the command that declares it.
enum ArgumentOrder {
  private static let optionsWithValue: Set = ["--backend", "--vault", "--collection", "--service", "-s", "--max-age"]
  private static let flags: Set = ["--json", "--quiet", "--offline"]

  /// Returns `arguments`, without the program's name, in the order that the parser requires. Arguments after the
  /// subcommand's name keep their order. `commandLength` returns the number of leading words that name the command.
  static func arranged(_ arguments: [String], commandLength: (ArraySlice<String>) -> Int) -> [String] {
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      let name = String(argument.prefix { $0 != "=" })
      let isJoined = argument.hasPrefix("-s") && argument.utf8.count > 2  // -sSERVICE
      guard isJoined || flags.contains(argument) || optionsWithValue.contains(name) else { break }
      index += optionsWithValue.contains(argument) ? 2 : 1
    }
    guard index > 0, index < arguments.count else { return arguments }
    let rest = arguments[index...]
    // The parser reports the first option that it does not know. That must not be a global one, so they go to the end.
    let length = arguments[index].hasPrefix("-") ? rest.count : commandLength(rest)
    return Array(rest.prefix(length)) + arguments[..<index] + rest.dropFirst(length)
  }
}
