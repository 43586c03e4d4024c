internal import ArgumentParser
internal import Coffer

/// For scripts of a person's own that offer names to choose from.
struct CompleteNamesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "complete-names",
    abstract: "Print the secrets' names where that needs no asking, and otherwise nothing.",
    shouldDisplay: false
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    try Output.standard.write(NameCompletion.names(global).map { $0 + "\n" }.joined())
  }
}
