internal import ArgumentParser
internal import Coffer

struct CompleteNamesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "complete-names",
    abstract: "Print the names of secrets for a completion script, if that requires no prompt.",
    shouldDisplay: false
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    let names = NameCompletion.names(in: global.serviceName, of: global.backend)
    try Output.standard.write(names.map { $0 + "\n" }.joined())
  }
}
