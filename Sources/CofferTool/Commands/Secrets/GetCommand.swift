internal import ArgumentParser
internal import Coffer

struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print a secret's value.",
    discussion: """
      The bytes are those that were stored. A line feed is added on a terminal only; bytes that a terminal \
      might obey are not sent to one.
      """
  )

  enum Newline: String, CaseIterable, ExpressibleByArgument {
    case yes, no, auto
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: NameCompletion.kind)
  var name: String

  @Flag(name: .customShort("n"), help: "Add no line feed, as --newline no.")
  var noNewline = false

  @Option(help: "Whether to add a line feed: yes, no, or auto.")
  var newline = Newline.auto

  @Flag(help: "Send any bytes to a terminal.")
  var force = false

  func run() throws {
    let identifier = try global.identifier(name)
    let store = try global.store()
    guard let value = try store.lookUp(identifier) else { throw MissingSecret.failure(identifier, in: store) }
    let output = Output.standard
    if output.isTerminal && !force && !value.isPlainText {
      throw Failure.usage(
        "The value has bytes that a terminal might obey. Send it to a file or a pipe, or add --force."
      )
    }
    try output.write(value)
    let adds: Bool =
      switch newline {
      case _ where noNewline: false
      case .yes: true
      case .no: false
      case .auto: output.isTerminal && !value.endsWithLineFeed
      }
    if adds { try output.write("\n") }
  }
}

extension SecretBytes {
  /// Whether a terminal would only show it: UTF-8 without control characters other than tab and line ends.
  var isPlainText: Bool {
    withBytes { bytes in
      bytes.withUnsafeBufferPointer { buffer in
        var decoder = UTF8()
        var iterator = buffer.makeIterator()
        while true {
          switch decoder.decode(&iterator) {
          case .emptyInput: return true
          case .error: return false
          case .scalarValue(let scalar):
            if scalar.isTerminalControl && !"\t\n\r".unicodeScalars.contains(scalar) { return false }
          }
        }
      }
    }
  }

  var endsWithLineFeed: Bool {
    withBytes { !$0.isEmpty && $0[$0.count - 1] == UInt8(ascii: "\n") }
  }
}
