internal import ArgumentParser
internal import Coffer

struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "set", abstract: "Store a secret from a prompt, a pipe or a file.",
    discussion: """
      On a terminal, the command prompts for the value twice and does not show it. From a pipe, it drops a final line \
      feed if that is the only line feed; --verbatim keeps it. A file is stored exactly as it is. An empty value is \
      refused without --allow-empty. The label, expiry and attributes that you give replace the stored ones; the \
      others are kept. A secret that would be the same stays as it is, with its time of change. A vault keeps the value \
      that is replaced in its history, unless --no-history is given: the vault is then written again without any \
      earlier version of the secret.
      """
  )

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

  @Flag(help: "Keep no earlier version of the secret in the vault.")
  var noHistory = false

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
        """
      )
    }
    let identifier = try global.newIdentifier(name)
    let change = try MetadataChange(label: label, expires: expires, attributes: attributes)
    let backend = try noHistory ? global.openVersioned() : global.open()
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
      let metadata = try change.applied(to: transaction.item(identifier)?.metadata)
      try transaction.storeIfChanged(value, for: identifier, metadata: metadata)
      if noHistory { try transaction.purge(identifier) }
    }
    if let vault = backend as? VaultBackend {
      let configuration = CofferConfiguration.current()
      let sentence = GitWorkTree.textSentence(
        vault.path, GitWorkTree.attributes(of: vault.path, configuration))
      if let sentence { note("secret: \(sentence)") }
    }
  }
}
