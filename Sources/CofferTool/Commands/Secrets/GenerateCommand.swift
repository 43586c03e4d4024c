internal import ArgumentParser
internal import Coffer
internal import CofferLibc

struct GenerateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "generate", abstract: "Store a new random value.",
    discussion: """
      Chooses each character or word with the same probability, from the system's source of randomness. Prints the \
      value only with --print. The alphabets are alphanumeric, letters, digits, hex and printable (ASCII without the \
      space and quotes, $, backslash and backquote, which shells and files of variables read differently); --characters sets another. With --words, the value is a phrase of words from a list of 2048, to type or \
      to remember: each word is worth 11 bits, so that 8 words are about as strong as 15 letters and digits.
      """)

  enum Alphabet: String, CaseIterable, ExpressibleByArgument {
    case alphanumeric, letters, digits, hex, printable

    var characters: [UInt8] {
      let digits = Array("0123456789".utf8)
      let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
      return switch self {
      case .alphanumeric: letters + digits
      case .letters: letters
      case .digits: digits
      case .hex: digits + Array("abcdef".utf8)
      case .printable: (UInt8(0x21)...0x7E).filter { !"'\"\\$`".utf8.contains($0) }
      }
    }
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  @Option(help: "The number of characters: 1 to 4096. Default: 32.")
  var length: Int?

  @Option(help: "The characters to choose from: \(Alphabet.allCases.map(\.rawValue).joined(separator: ", ")).")
  var alphabet: Alphabet?

  @Option(help: ArgumentHelp("The characters to choose from: distinct, and ASCII.", valueName: "text"))
  var characters: String?

  @Option(help: "The number of words: 1 to 512. Generates words instead of characters.")
  var words: Int?

  @Option(help: ArgumentHelp("The text between two words. Default: -", valueName: "text"))
  var separator: String?

  @Option(help: ArgumentHelp("When the secret expires: 90d, or another time as for secret set.", valueName: "time"))
  var expires: String?

  @Flag(help: "Replace an existing secret.")
  var force = false

  @Flag(help: "Print the value as well.")
  var print = false

  func run() throws {
    let (value, bits) = try generated()
    let given = try GivenMetadata(expires: expires)
    let identifier = try global.newIdentifier(name)

    let isTaken = try global.open(to: .change).withTransaction { transaction throws(SecretError) in
      let existing = try transaction.item(identifier)
      if existing != nil, !force { return true }
      let metadata = given.applied(to: existing?.metadata, isNewValue: true)
      try transaction.store(value, for: identifier, metadata: .replace(metadata))
      return false
    }
    if isTaken { throw Failure.exists(identifier) }
    changed("The value was stored.")
    if bits < 80 {
      note("Stored. The value is one of 2^\(bits), which is too few if someone can try them all.")
    }
    if print {
      try Output.standard.write(value)
      if Output.standard.isTerminal { try Output.standard.write("\n") }
    }
  }

  /// The value, and the bits of randomness in it.
  private func generated() throws(Failure) -> (SecretBytes, Int) {
    let (parts, count): ([[UInt8]], Int)
    if let words {
      guard length == nil, alphabet == nil, characters == nil else {
        throw .usage("--words excludes --length, --alphabet and --characters. Use words or characters.")
      }
      guard (1...512).contains(words) else { throw .usage("--words must be 1 to 512.") }
      (parts, count) = (WordList.words(), words)
    } else {
      guard separator == nil else { throw .usage("--separator requires --words. Add it.") }
      let length = length ?? 32
      guard (1...4096).contains(length) else { throw .usage("--length must be 1 to 4096.") }
      (parts, count) = (try chosenCharacters().map { [$0] }, length)
    }
    let separator = words == nil ? [] : Array((separator ?? "-").utf8)
    let longest = parts.lazy.map(\.count).max() ?? 0
    let text = SecretWriter.bytes(capacity: count * (longest + separator.count)) { writer in
      for number in 0..<count {
        if number > 0 { writer.append(separator.span) }
        let part = parts[SecureRandom.number(below: parts.count)]
        writer.append(part.span)
      }
    }
    return (text, Int(Double(count) * log2(Double(parts.count))))
  }

  private func chosenCharacters() throws(Failure) -> [UInt8] {
    guard let characters else { return (alphabet ?? .alphanumeric).characters }
    if alphabet != nil { throw .exclusive("--alphabet and --characters") }
    let bytes = Array(characters.utf8)
    guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }), Set(bytes).count == bytes.count, bytes.count >= 2 else {
      throw .usage("--characters must be two or more distinct ASCII characters.")
    }
    return bytes
  }
}
