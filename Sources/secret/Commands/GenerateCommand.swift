internal import ArgumentParser
internal import Coffer
internal import Glibc

struct GenerateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate",
    abstract: "Store a new random value.",
    discussion: """
      Every character is chosen with the same chance, from the system's randomness. The value is printed only with \
      --print. The alphabets: alphanumeric, letters, digits, hex, printable (ASCII without the blank); --characters \
      gives another.
      """
  )

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
      case .printable: Array(UInt8(0x21)...0x7E)
      }
    }
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.")
  var name: String

  @Option(help: "How many characters: 1 to 4096.")
  var length = 32

  @Option(help: "What they are chosen from: \(Alphabet.allCases.map(\.rawValue).joined(separator: ", ")).")
  var alphabet: Alphabet?

  @Option(help: ArgumentHelp("The characters to choose from, each once: ASCII.", valueName: "text"))
  var characters: String?

  @Flag(help: "Replace the secret that is there.")
  var force = false

  @Flag(help: "Print the value as well.")
  var print = false

  func run() throws {
    guard (1...4096).contains(length) else { throw Failure.usage("The length must be 1 to 4096 characters.") }
    let set = try chosenCharacters()
    let identifier = try global.identifier(name)
    let value = RandomText.make(length, of: set)

    let store = try global.store()
    let isTaken: Bool
    if let store = store as? any TransactionalSecretBackend {
      isTaken = try store.transaction { transaction throws(SecretError) in
        if try transaction.item(identifier) != nil, !force { return true }
        try transaction.store(value, for: identifier, metadata: nil)
        return false
      }
    } else if try store.item(identifier) != nil, !force {
      isTaken = true
    } else {
      try store.store(value, for: identifier)
      isTaken = false
    }
    if isTaken {
      throw Failure(
        .wouldOverwrite,
        """
        There is a secret “\(name)” in the service “\(identifier.service)” already, and it stays as it is. \
        Add --force to replace it.
        """
      )
    }
    let bits = Int(Double(length) * log2(Double(set.count)))
    if bits < 80 { note("Stored. It is one of 2^\(bits): too few, where somebody can try them all.") }
    if print {
      try Output.standard.write(value)
      if Output.standard.isTerminal { try Output.standard.write("\n") }
    }
  }

  private func chosenCharacters() throws(Failure) -> [UInt8] {
    guard let characters else { return (alphabet ?? .alphanumeric).characters }
    if alphabet != nil { throw .usage("--alphabet and --characters both say what to choose from. Give one.") }
    let bytes = Array(characters.utf8)
    guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }), Set(bytes).count == bytes.count, bytes.count >= 2
    else {
      throw .usage("--characters takes two or more different ASCII characters, each once.")
    }
    return bytes
  }
}

/// Text of characters that each had the same chance.
enum RandomText {
  static func make(_ length: Int, of characters: [UInt8]) -> SecretBytes {
    // The largest multiple of the number of characters: what lies above would favour the first ones.
    let limit = 256 - 256 % characters.count
    return SecretBytes(count: length) { text in
      var filled = 0
      while filled < length {
        // A fresh key is 32 random bytes in guarded memory.
        VaultKey.generate().withBytes { random in
          for index in random.indices where filled < length && Int(random[index]) < limit {
            text[filled] = characters[Int(random[index]) % characters.count]
            filled += 1
          }
        }
      }
    }
  }
}
