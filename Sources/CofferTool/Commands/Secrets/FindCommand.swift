internal import ArgumentParser
internal import Coffer

struct FindCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "find",
    abstract: "Print the secrets of all services whose name, label or attributes hold a text.",
    discussion: """
      Upper and lower case are the same. Each is printed as a reference, secret://SERVICE/ACCOUNT, which run and \
      inject take. Values are not looked at. If there is none, the exit status is 1.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "The text to look for.")
  var pattern: String

  func run() throws {
    let wanted = pattern.lowercased()
    let found = try global.store().items(inService: global.service).filter { item in
      let metadata = item.metadata
      let texts = [item.identifier.service, item.identifier.account, metadata.label ?? ""]
      return (texts + metadata.attributes.values).contains { text in
        text.lowercased().unicodeScalars.holds(wanted.unicodeScalars)
      }
    }
    if format.json {
      try Output.standard.json(found.map(ItemDescription.init))
    } else {
      try Output.standard.write(found.map { SecretReference.text(of: $0.identifier) + "\n" }.joined())
    }
    if found.isEmpty { throw ExitCode(ExitStatus.noSuchSecret.rawValue) }
  }
}

extension String.UnicodeScalarView {
  /// By scalars: an accent that combines with the last letter does not hide it.
  fileprivate func holds(_ other: Self) -> Bool {
    let (mine, wanted) = (Array(self), Array(other))
    guard wanted.count <= mine.count else { return false }
    return (0...(mine.count - wanted.count)).contains { mine[$0...].starts(with: wanted) }
  }
}
