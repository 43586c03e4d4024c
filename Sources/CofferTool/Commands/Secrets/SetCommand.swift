internal import ArgumentParser
internal import Coffer
internal import CofferSystem

struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "set", abstract: "Store a secret from a prompt, a pipe or a file.",
    discussion: """
      On a terminal, the command prompts for the value twice and does not show it. From a pipe, it drops a final line \
      feed if that is the only line feed; --verbatim keeps it. A file is stored exactly as it is. An empty value is \
      refused without --allow-empty. The label and attributes that you give replace the stored ones; the others are kept. \
      The expiry is that of the value: a new value has none unless you give one. A secret that would be the same stays as \
      it is, with its time of change. A vault keeps the value that is replaced in its history, unless the secret has none: \
      programs store most of theirs without one. --history begins to keep it. --no-history ends it, and the vault is \
      written again without any earlier version of the secret.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  @Option(path: "Read the value from a file, or from standard input if -.")
  var fromFile: String?

  @Flag(help: "Keep a final line feed from a pipe.")
  var verbatim = false

  @Option(help: "A human-readable label. An empty one removes it.")
  var label: String?

  @Option(
    name: .customLong("attribute"),
    help: ArgumentHelp("An attribute's name and value. Repeat for more.", valueName: "name=value"))
  var attributes: [String] = []

  @Option(help: ArgumentHelp("When the secret expires: \(TimeText.forms). Or never.", valueName: "time"))
  var expires: String?

  @Flag(help: "Store an empty value.")
  var allowEmpty = false

  @Flag(inversion: .prefixedNo, help: "Keep earlier versions of the secret in the vault, or none.")
  var history: Bool?

  /// Accepts a value that was given as an argument, in order to refuse it with an explanation.
  @Argument(help: .hidden)
  var extra: [String] = []

  func run() throws {
    if !extra.isEmpty {
      throw Failure.usage(
        """
        A value must not be an argument: every user of this machine can read it in the list of processes, and your \
        shell's history now contains it. Delete it from the history, and enter the value at the prompt, through a \
        pipe or with --from-file.
        """)
    }
    let identifier = try global.newIdentifier(name)
    let given = try GivenMetadata(label: label, expires: expires, attributes: attributes)
    let backend = try history == false ? global.openVersioned(to: .change) : global.open(to: .change)
    try requireMeant(identifier, in: backend)
    let input = ValueInput(file: fromFile, verbatim: verbatim)
    // Reports a backend that cannot be opened before the value is typed twice.
    if input.isPrompt { _ = try backend.item(identifier) }
    let value = try input.read(for: name)
    if value.isEmpty && !allowEmpty {
      throw try Failure.empty(
        "The value is empty", identifier, in: backend,
        advice: "Check the program before the pipe. To store an empty value, add --allow-empty.")
    }
    value.noteCarriageReturn()
    try backend.withTransaction { transaction throws(SecretError) in
      let erased = history == false ? try transaction.item(identifier)?.metadata : nil
      if history == false { try transaction.erase(identifier) }
      try transaction.storeIfChanged(
        value, for: identifier, history: history.map { $0 ? .kept : .none } ?? .unchanged
      ) { given.applied(to: $0 ?? erased, isNewValue: $1) }
    }
  }

  /// Asks whether a new name with an equals sign is the whole name. It may be a name and a value.
  private func requireMeant(_ identifier: SecretIdentifier, in backend: any SecretBackend) throws {
    guard let end = name.firstIndex(of: "="), !VerbatimNames.contain(name), try !backend.contains(identifier)
    else { return }
    let before = name[..<end]
    let warning =
      "All of “\(before)=…” would be the name, and secret list shows names. If a value stands after the =, it is in your "
      + "shell's history now: delete it there."
    if let answer = try Terminal.answer("\(warning) Use all of it as the name? [y/N] ") {
      if ["y", "yes"].contains(answer) { return }
      throw Failure(
        .refused, "Nothing was stored.", advice: "To enter the value: secret set \(String(before).quotedForShell)")
    }
    throw Failure.usage(
      warning,
      advice: "To give the value: secret set \(String(before).quotedForShell). If it is the name: secret set -- 'NAME'")
  }
}
