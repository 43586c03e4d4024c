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

  func run() throws {
    let identifier = try global.identifier(name)
    let backend = try global.openVersioned()
    let versions = try backend.versions(of: identifier)
    if versions.isEmpty { throw MissingSecret.failure(identifier, in: backend) }
    func kind(_ version: SecretVersion) -> String {
      version.kind == .removal ? "removed" : "\(version.kind)"
    }
    try format.print(
      versions.map { version -> JSONObject in
        let metadata = version.metadata
        return [
          "version": version.number, "kind": kind(version), "time": version.date, "label": metadata.label,
          "expires": metadata.expires, "attributes": metadata.attributes,
        ]
      },
      or: versions.map { version in
        let (number, time) = (String(version.number), version.date.ISO8601Format())
        let fields = [number, time, kind(version), version.metadata.label ?? ""]
        return fields.map(\.printable).joined(separator: "\t") + "\n"
      }.joined())
  }
}
