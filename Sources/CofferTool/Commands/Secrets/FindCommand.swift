internal import ArgumentParser
internal import Coffer

struct FindCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "find", abstract: "Search the names, labels and attributes of all services.",
    discussion: """
      Ignores case, and does not search values. Prints each secret as a reference, secret://SERVICE/ACCOUNT, which run \
      and inject accept. The exit status is 1 if nothing is found.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "The text to search for.")
  var pattern: String

  func run() throws {
    let wanted = pattern.lowercased()
    let backend = try UnreadableItems.leaveOut(of: global.open())
    let found = try backend.items(inService: global.service).filter { item in
      let metadata = item.metadata
      let texts = [item.identifier.service, item.identifier.account, metadata.label ?? ""]
      return (texts + metadata.attributes.values).contains { text in
        // Compares scalars, so that a match may end before a combining accent.
        wanted.isEmpty || text.lowercased().unicodeScalars.contains(wanted.unicodeScalars)
      }
    }
    try format.print(found.map(\.json), or: found.map { SecretReference.text(of: $0.identifier) + "\n" }.joined())
    if found.isEmpty && UnreadableItems.status == nil { throw ExitCode(ExitStatus.noSuchSecret.rawValue) }
  }
}
