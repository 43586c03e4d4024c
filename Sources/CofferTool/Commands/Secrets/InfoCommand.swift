internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration("info", abstract: "Print a secret's metadata, without its value.")

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  func run() throws {
    let identifier = try global.identifier(name)
    let backend = try global.open()
    guard let item = try backend.item(identifier) else { throw MissingSecret.failure(identifier, in: backend) }
    let metadata = item.metadata
    let fields: [(title: String, text: String?)] = [
      ("name", item.identifier.account), ("service", item.identifier.service), ("label", metadata.label),
      ("created", metadata.created?.ISO8601Format()), ("modified", metadata.modified?.ISO8601Format()),
      ("expires", metadata.expires.map { Expiry.text($0, now: Date()) }),
    ]
    let attributes = metadata.attributes.sorted { $0.key < $1.key }
      .map { (title: "attribute \($0.key.printable)", text: Optional($0.value)) }
    // Escapes control characters on a pipe as well, so that a label cannot forge a line.
    let lines = (fields + attributes).compactMap { title, text in text.map { "\(title): \($0.printable)\n" } }
    try format.print(item.json, or: lines.joined())
  }
}
