internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the secrets' names, never values.",
    discussion:
      """
      One name a line, sorted by bytes. Names may hold line feeds: --null or --json tell them apart. With --long \
      each line has the time of the last change, the expiry or -, the name, and the label, with tabs between them \
      and control characters spelt out.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "Only names that begin with this.")
  var prefix = ""

  @Flag(name: [.customShort("0"), .long], help: "End each name with a NUL instead of a line feed.")
  var null = false

  @Flag(help: "Only secrets that have expired.")
  var expired = false

  @Flag(name: .shortAndLong, help: "Print times and labels, too.")
  var long = false

  func run() throws {
    if long && null { throw Failure.usage("--long and --null are two ways to print. Give one.") }
    let now = Date()
    let output = Output.standard
    let items = try global.store().items(inService: global.serviceName)
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
