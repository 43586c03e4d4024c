internal import ArgumentParser
internal import Coffer

struct RemoteCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "remote", abstract: "Examine an engine that vaults can be on.", subcommands: [RemoteCheckCommand.self])
}

struct RemoteCheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "check", abstract: "Try whether an engine can keep a vault.",
    discussion: """
      Makes an object beside that of the URL, NAME.check-…, and removes it. Tries the conditions, versions and additions, \
      the largest object, and races of eight writers. secret init does the same in short.
      """)

  @OptionGroup(title: "Global options") var messages: QuietOption

  @Argument(help: "The URL of a vault, which need not exist. It is not read.")
  var url: String

  func run() throws {
    let url = try RemoteURL(url).description
    let check = try RemoteCheck(beside: url, environment: VaultEnvironment())
    try Progress.during("Trying \(url.printable) …") { try check.run(rounds: 20, largest: 8 << 20) }
    try Output.standard.line("The engine of \(url.printable) keeps the rules.")
  }
}
