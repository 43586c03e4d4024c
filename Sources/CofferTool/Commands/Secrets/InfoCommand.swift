internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "info", abstract: "Print a secret's metadata, without its value.")

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  func run() throws {
    let identifier = try global.identifier(name)
    let item = try global.open().existingItem(identifier)
    let output = Output.standard
    if format.json { return try output.json(ItemDescription(item)) }

    // Escapes control characters on a pipe as well, so that a label cannot forge a line.
    func line(_ title: String, _ text: String?) throws(SecretError) {
      if let text { try output.write("\(title): \(text.printable)\n") }
    }
    try line("name", item.identifier.account)
    try line("service", item.identifier.service)
    try line("label", item.metadata.label)
    try line("created", item.metadata.created?.ISO8601Format())
    try line("modified", item.metadata.modified?.ISO8601Format())
    try line("expires", item.metadata.expires.map { Expiry.text($0, now: Date()) })
    for (name, value) in item.metadata.attributes.sorted(by: { $0.key < $1.key }) {
      try line("attribute \(name.printable)", value)
    }
  }
}
