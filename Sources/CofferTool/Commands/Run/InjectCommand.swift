internal import ArgumentParser
internal import Coffer

struct InjectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inject",
    abstract: "Fill the secret:// references in a template.",
    discussion: """
      A reference is secret://SERVICE/ACCOUNT, percent-encoded, alone or as {{ secret://SERVICE/ACCOUNT }}. Alone it \
      ends before the first character that is none of letters, digits and -._~%; between braces it may hold any \
      other. Values are put in verbatim: nothing is quoted for the format of the file. If one is missing, nothing is \
      written. The file is made with mode 0600, and takes the place of what was there in one step.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    name: [.customShort("i"), .long],
    help: ArgumentHelp("The template; default: standard input.", valueName: "path")
  )
  var input = "-"

  @Option(
    name: [.customShort("o"), .long],
    help: ArgumentHelp("The file to write; default: standard output.", valueName: "path")
  )
  var output: String?

  @Flag(help: "Send any bytes to a terminal.")
  var force = false

  func run() throws {
    let template = try Template(try ValueInput.read(file: input))
    let filled = try template.filled(from: try global.store())
    if let output { return try PrivateFile.write(filled, to: output, replacing: true) }
    if Output.standard.isTerminal && !force && !filled.isPlainText {
      throw Failure.usage(
        "The result has bytes that a terminal might obey. Use --output or a pipe, or add --force."
      )
    }
    try Output.standard.write(filled)
  }
}
