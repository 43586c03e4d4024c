internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Store a secret: asked for, or from a pipe or a file.",
    discussion: """
      On a terminal the value is asked for twice, without showing it. From a pipe, one final line feed is \
      dropped if it is the only one; --verbatim keeps it, and a file is always taken exactly. What is given of \
      label, expiry and attributes replaces what was there, and the rest is kept.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: NameCompletion.kind)
  var name: String

  @Option(help: ArgumentHelp("Take the value from a file, or from standard input if -.", valueName: "path"))
  var fromFile: String?

  @Flag(help: "Keep a final line feed from the pipe.")
  var verbatim = false

  @Option(help: "A human-readable name. Empty removes it.")
  var label: String?

  @Option(
    name: .customLong("attribute"),
    parsing: .singleValue,
    help: ArgumentHelp("A further name and value; may be given several times.", valueName: "name=value")
  )
  var attributes: [String] = []

  @Option(help: ArgumentHelp("When it stops being of use: \(TimeText.forms). Or never.", valueName: "time"))
  var expires: String?

  /// What a value in the wrong place is caught by.
  @Argument(help: .hidden)
  var extra: [String] = []

  func run() throws {
    if !extra.isEmpty {
      throw Failure.usage(
        """
        A value is not taken as an argument: every user of this machine can see it in the list of processes, \
        and it is in your shell's history now. Remove it there, and give the value by the prompt, a pipe or \
        --from-file.
        """
      )
    }
    let identifier = try global.identifier(name)
    let change = try MetadataChange(label: label, expires: expires, attributes: attributes)
    let store = try global.store()
    let input = ValueInput(file: fromFile, verbatim: verbatim)
    // Nobody should type a value twice to learn that there is no vault, or no key for it.
    if input.asksPerson { try (store as? VaultBackend)?.unlock() }
    let value = try input.read(for: name)

    guard !change.isEmpty else {
      try store.store(value, for: identifier, metadata: nil)
      return
    }
    if let store = store as? any TransactionalSecretBackend {
      try store.transaction { transaction throws(SecretError) in
        let metadata = change.applied(to: try transaction.item(identifier)?.metadata)
        try transaction.store(value, for: identifier, metadata: metadata)
      }
    } else {
      let metadata = change.applied(to: try store.item(identifier)?.metadata)
      try store.store(value, for: identifier, metadata: metadata)
    }
  }
}

/// What `set` was asked to change beside the value.
private struct MetadataChange {
  private enum Expiry {
    case kept
    case never
    case at(Date)
  }
  private let label: String?
  private let expiry: Expiry
  private let attributes: [(name: String, value: String)]

  init(label: String?, expires: String?, attributes: [String]) throws(Failure) {
    self.label = label
    switch expires {
    case nil: expiry = .kept
    case "never": expiry = .never
    case let text?:
      guard let moment = TimeText.moment(text, now: Date()) else {
        throw .usage("“\(text)” is no time to expire at. Write \(TimeText.forms).")
      }
      expiry = .at(moment)
    }
    self.attributes = try attributes.map { text throws(Failure) in
      guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
        throw .usage("An attribute is written name=value, and one given has no name or no equals sign.")
      }
      return (String(text[..<equals]), String(text[text.index(after: equals)...]))
    }
  }

  var isEmpty: Bool {
    if case .kept = expiry { label == nil && attributes.isEmpty } else { false }
  }

  func applied(to existing: SecretMetadata?) -> SecretMetadata {
    var metadata = existing ?? SecretMetadata()
    if let label { metadata.label = label.isEmpty ? nil : label }
    switch expiry {
    case .kept: break
    case .never: metadata.expires = nil
    case .at(let moment): metadata.expires = moment
    }
    for (name, value) in attributes { metadata.attributes[name] = value }
    return metadata
  }
}
