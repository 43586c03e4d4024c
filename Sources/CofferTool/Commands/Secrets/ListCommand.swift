internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the names of secrets, never their values.",
    discussion:
      """
      Prints one name a line, sorted by bytes. A name may contain line feeds: use --null or --json to separate names \
      reliably. With --long, each line has the time of the last change, the expiry or -, the name and the label, \
      separated by tabs and with control characters escaped.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "Print only names that begin with this.")
  var prefix = ""

  @Flag(name: [.customShort("0"), .long], help: "End each name with a NUL instead of a line feed.")
  var null = false

  @Flag(help: "Print only secrets that have expired.")
  var expired = false

  @Flag(name: .shortAndLong, help: "Print times and labels as well.")
  var long = false

  func run() throws {
    if long && null { throw Failure.usage("--long and --null exclude each other. Use one of them.") }
    let now = Date()
    let output = Output.standard
    let items = try global.backend.open().items(inService: global.serviceName)
      .filter { $0.identifier.account.utf8.starts(with: prefix.utf8) }
      .filter { item in !expired || item.metadata.expires.map { $0 <= now } ?? false }
    if format.json {
      try output.json(items.map(ItemDescription.init))
    } else if long {
      try output.write(items.map { Self.line($0, now: now) + "\n" }.joined())
    } else if null {
      try output.write(items.map { $0.identifier.account + "\0" }.joined())
    } else {
      let isTerminal = output.isTerminal
      try output.write(
        items.map { (isTerminal ? $0.identifier.account.printable : $0.identifier.account) + "\n" }.joined()
      )
      if items.isEmpty && isTerminal && !expired {
        note("There are no secrets in the service “\(global.serviceName)”.")
      }
    }
  }

  private static func line(_ item: SecretItem, now: Date) -> String {
    let expiry = item.metadata.expires.map { $0.ISO8601Format() + ($0 <= now ? " (expired)" : "") }
    let fields = [
      item.metadata.modified?.ISO8601Format() ?? "-", expiry ?? "-", item.identifier.account,
      item.metadata.label ?? "",
    ]
    return fields.map(\.printable).joined(separator: "\t")
  }
}
