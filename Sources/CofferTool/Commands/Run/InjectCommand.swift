internal import ArgumentParser

struct InjectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "inject", abstract: "Replace the secret:// references in a template by their values.",
    discussion: """
      A reference is secret://SERVICE/ACCOUNT, percent-encoded, by itself or as {{ secret://SERVICE/ACCOUNT }}. By itself, it \
      ends before the first character other than letters, digits and -._~%; in braces it may contain any character but a \
      vertical bar between blanks. Values are inserted verbatim, unless a filter follows in braces: \
      {{ secret://SERVICE/ACCOUNT | json }} inserts a JSON string with its quotation marks, base64 one line, url the \
      percent-encoded value, and shell a word in single quotes. If a secret does not exist, nothing is written. The output file \
      has mode 0600 and replaces an existing file in one step. It is not written through a link that leads out of the \
      git work tree or the project around it, or else out of its own directory, or out of the working directory. The result has at most \(Template.maximumSize >> 20) MiB.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    name: [.customShort("i"), .long],
    help: ArgumentHelp("The template. Default: standard input.", valueName: "path"), completion: .file())
  var input = "-"

  @Option(name: [.customShort("o"), .long], path: "The file to write. Default: standard output.")
  var output: String?

  @Flag(help: "Print any bytes to a terminal.")
  var force = false

  func run() throws {
    // A project that is not allowed gets no secret of the person's choice either.
    _ = try global.project()
    let limit = output.map(OutputFile.limit) ?? { _ in true }
    if let output { try OutputFile.requireNoLinkOut(output, limit) }
    let template = try Template(try ValueInput.read(file: input))
    let filled = try template.filled(from: try global.open())
    try OutputFile.write(
      filled, to: output ?? "-", replacing: true, force: force, "The result",
      ". Use --output or a pipe, or add --force.", within: limit)
  }
}
