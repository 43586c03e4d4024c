internal import ArgumentParser
internal import Coffer

struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "get", abstract: "Print a secret's value.",
    discussion: """
      Prints the stored bytes unchanged. Adds a line feed only on a terminal, and refuses to print control characters \
      and invisible characters to a terminal.
      """)

  enum Newline: String, CaseIterable, ExpressibleByArgument {
    case yes, no, auto
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  @Option(help: ArgumentHelp("Print an earlier version, by its number in secret history.", valueName: "number"))
  var version: Int?

  @Flag(name: .customShort("n"), help: "Add no line feed, like --newline no.")
  var noNewline = false

  @Option(help: "Whether to add a line feed: yes, no, or auto.")
  var newline = Newline.auto

  @Flag(help: "Print any bytes to a terminal.")
  var force = false

  func run() throws {
    let identifier = try global.identifier(name)
    let value = try value(of: identifier)
    let output = Output.standard
    try output.reveal(value, force: force, "The value", ". Write it to a file or a pipe, or add --force.")
    let isNeeded = newline == .yes || newline == .auto && output.isTerminal && !value.endsWithLineFeed
    if isNeeded && !noNewline { try output.write("\n") }
  }

  private func value(of identifier: SecretIdentifier) throws -> SecretBytes {
    guard let version else {
      let secret = try global.open().existing(identifier)
      Expiry.warn(of: [secret.item])
      VaultNotes.noteConflicts(among: [secret])
      return secret.value
    }
    guard let secret = try global.openVersioned().secret(identifier, version: version) else {
      throw MissingSecret.failure(identifier, version: version)
    }
    return secret.value
  }
}
