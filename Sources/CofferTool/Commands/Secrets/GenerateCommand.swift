internal import ArgumentParser
internal import Coffer
internal import Glibc

struct GenerateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate",
    abstract: "Store a new random value.",
    discussion: """
      Every character or word is chosen with the same chance, from the system's randomness. The value is printed only \
      with --print. The alphabets: alphanumeric, letters, digits, hex, printable (ASCII without the blank); \
      --characters gives another. With --words the value is so many words out of 2048, for a person to type or to \
      remember: each is worth 11 bits, and so 8 words about as much as 15 letters and digits.
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

  @Option(help: "How many characters: 1 to 4096. Default: 32.")
  var length: Int?

  @Option(help: "What they are chosen from: \(Alphabet.allCases.map(\.rawValue).joined(separator: ", ")).")
  var alphabet: Alphabet?

  @Option(help: ArgumentHelp("The characters to choose from, each once: ASCII.", valueName: "text"))
  var characters: String?

  @Option(help: "How many words, in place of characters: 1 to 512.")
  var words: Int?

  @Option(help: ArgumentHelp("What stands between the words. Default: -", valueName: "text"))
  var separator: String?

  @Flag(help: "Replace the secret that is there.")
  var force = false

  @Flag(help: "Print the value as well.")
  var print = false

  func run() throws {
    let (value, bits) = try generated()
    let identifier = try global.identifier(name)

    let store = try global.store()
    let isTaken: Bool
    if let store = store as? any TransactionalSecretBackend {
      isTaken = try store.transaction { transaction throws(SecretError) in
        if try transaction.item(identifier) != nil, !force { return true }
        try transaction.store(value.bytes, for: identifier, metadata: nil)
        return false
      }
    } else if try store.item(identifier) != nil, !force {
      isTaken = true
    } else {
      try store.store(value.bytes, for: identifier)
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
    if bits < 80 { note("Stored. It is one of 2^\(bits): too few, where somebody can try them all.") }
    if print {
      try Output.standard.write(value.bytes)
      if Output.standard.isTerminal { try Output.standard.write("\n") }
    }
  }

  /// The value, and how many bits of chance are in it.
  private func generated() throws(Failure) -> (SharedSecret, Int) {
    if let words {
      guard length == nil, alphabet == nil, characters == nil else {
        throw .usage("--words stands in place of --length, --alphabet and --characters. Give one kind.")
      }
      guard (1...512).contains(words) else { throw .usage("There can be 1 to 512 words.") }
      let list = WordList.words()
      let text = RandomText.words(words, of: list, separator: Array((separator ?? "-").utf8))
      return (SharedSecret(text), Int(Double(words) * log2(Double(list.count))))
    }
    guard separator == nil else { throw .usage("--separator is for --words. Give both.") }
    let length = length ?? 32
    guard (1...4096).contains(length) else { throw .usage("The length must be 1 to 4096 characters.") }
    let set = try chosenCharacters()
    return (
      SharedSecret(RandomText.characters(length, of: set)), Int(Double(length) * log2(Double(set.count)))
    )
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

/// Text of parts that each had the same chance.
enum RandomText {
  static func characters(_ count: Int, of characters: [UInt8]) -> SecretBytes {
    var random = RandomNumbers(below: characters.count)
    return SecretBytes(count: count) { text in
      for index in text.indices { text[index] = characters[random.next()] }
    }
  }

  static func words(_ count: Int, of words: [[UInt8]], separator: [UInt8]) -> SecretBytes {
    var random = RandomNumbers(below: words.count)
    let longest = words.lazy.map(\.count).max() ?? 0
    var length = 0
    let text = SecretBytes(count: count * (longest + separator.count)) { text in
      for number in 0..<count {
        for byte in (number == 0 ? [] : separator) + words[random.next()] {
          text[length] = byte
          length += 1
        }
      }
    }
    return text.withBytes { SecretBytes(copying: $0.extracting(0..<length)) }
  }
}

/// Numbers from 0 on that each have the same chance.
struct RandomNumbers: ~Copyable {
  private let count: Int
  /// The largest multiple of the count: what lies above would favour the first numbers.
  private let limit: Int
  private var random = VaultKey.generate()
  private var used = 0

  /// `count` is 65,536 at most.
  init(below count: Int) {
    self.count = count
    limit = 65_536 - 65_536 % count
  }

  mutating func next() -> Int {
    while true {
      if used == random.count {
        // A fresh key is 32 random bytes in guarded memory.
        random = VaultKey.generate()
        used = 0
      }
      let number = random.withBytes { Int($0[used]) << 8 | Int($0[used + 1]) }
      used += 2
      if number < limit { return number % count }
    }
  }
}
