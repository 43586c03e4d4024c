internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct HistoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "history", abstract: "Print the versions of a secret, never their values.",
    discussion: """
      Prints one version a line, newest first: its number, the time of the change, what became of it (current, earlier \
      or removed) and its label, separated by tabs and with control characters escaped. Use a number with secret get \
      --version or secret restore --version.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "The secret's name.", completion: CompletedValue.formerNames.kind)
  var name: String

  private struct Line: Encodable {
    let version: Int
    let kind: String
    let time: Date
    let label: String?
    let expires: Date?
    let attributes: [String: String]
  }

  func run() throws {
    let identifier = try global.identifier(name)
    let backend = try global.openVersioned()
    let versions = try backend.versions(of: identifier)
    if versions.isEmpty { throw MissingSecret.failure(identifier, in: backend) }
    let lines = versions.map { version in
      Line(
        version: version.number, kind: version.kind == .removal ? "removed" : "\(version.kind)",
        time: version.date, label: version.metadata.label, expires: version.metadata.expires,
        attributes: version.metadata.attributes)
    }
    try format.print(
      lines,
      or: lines.map { line in
        let fields = [String(line.version), line.time.ISO8601Format(), line.kind, line.label ?? ""]
        return fields.map(\.printable).joined(separator: "\t") + "\n"
      }.joined())
  }
}
