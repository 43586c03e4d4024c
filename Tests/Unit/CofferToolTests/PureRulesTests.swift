import CofferCore
import Foundation
import Testing

@testable import CofferTool

@Suite struct ArgumentOrderTests {
  private func arranged(_ line: String) -> String {
    ArgumentOrder.arranged(line.split(separator: " ").map(String.init)) { words in
      words.first == "key" ? min(2, words.count) : 1
    }.joined(separator: " ")
  }

  @Test func globalOptionsAreMovedBehindTheCommand() {
    #expect(arranged("--vault V set NAME") == "set --vault V NAME")
    #expect(arranged("--vault=V --json -s S list P") == "list --vault=V --json -s S P")
    #expect(arranged("-sS get NAME") == "get -sS NAME")
    #expect(arranged("--quiet -s S get NAME") == "get --quiet -s S NAME")
    #expect(arranged("--backend vault key list --all") == "key list --backend vault --all")
  }

  @Test func otherArgumentsAreNotMoved() {
    #expect(arranged("get --vault V NAME") == "get --vault V NAME")
    #expect(arranged("run -s S -- env --vault V") == "run -s S -- env --vault V")
    #expect(arranged("--vault V run -- get -- -s") == "run --vault V -- get -- -s")
    #expect(arranged("--help set") == "--help set")
    #expect(arranged("--vault") == "--vault")
    #expect(arranged("--vault V") == "--vault V")
    #expect(arranged("--verbose set x") == "--verbose set x")
  }

  @Test func anUnknownOptionComesBeforeTheGlobalOnes() {
    #expect(arranged("--vault V --verbose set x") == "--verbose set x --vault V")
    #expect(arranged("--vault V -- get x") == "-- get x --vault V")
  }
}

@Suite struct TimeTextTests {
  private let now = Date(timeIntervalSince1970: 1_000_000_000)

  @Test(arguments: [
    ("30s", 1_000_000_030), ("2m", 1_000_000_120), ("1h", 1_000_003_600), ("1d", 1_000_086_400),
    ("1w", 1_000_604_800), ("2001-09-10", 1_000_080_000), ("2001-09-09T01:46:41Z", 1_000_000_001),
    ("2001-09-09T03:46:41+02:00", 1_000_000_001),
  ]) func validTime(_ text: String, _ seconds: Double) {
    #expect(TimeText.moment(text, now: now) == Date(timeIntervalSince1970: seconds))
  }

  @Test(arguments: [
    "", "d", "0d", "-1d", "1", "1y", "1.5h", "d1", "99999999999999999999d", "9223372036854775807w", "37000d",
    "yesterday", "2001-13-01", "2001-02-30", "2001-02-30T00:00:00Z", "2001-01-01T24:00:00Z", "2001-01-01x",
    "T",
  ]) func invalidTime(_ text: String) {
    #expect(TimeText.moment(text, now: now) == nil)
  }
}

@Suite struct ExpiryTests {
  private let now = Date(timeIntervalSince1970: 1_000_000_000)

  private func state(expiresIn seconds: Double?, soon: Int = Expiry.soon) -> Expiry.State {
    let metadata = SecretMetadata(expires: seconds.map { now.addingTimeInterval($0) })
    return Expiry.state(of: metadata, now: now, soon: soon)
  }

  @Test func theStateDependsOnTheTimeThatIsLeft() {
    #expect(state(expiresIn: nil) == .none)
    #expect(state(expiresIn: -1) == .expired && state(expiresIn: 0) == .expired)
    #expect(state(expiresIn: 0.5) == .soon && state(expiresIn: 14 * 86_400) == .soon)
    #expect(state(expiresIn: 14 * 86_400 + 1) == .none)
    #expect(state(expiresIn: 61, soon: 60) == .none && state(expiresIn: 60, soon: 60) == .soon)
    #expect(state(expiresIn: 1, soon: 0) == .none && state(expiresIn: -1, soon: 0) == .expired)
  }
}

@Suite struct PrintableTextTests {
  private func isPlain(_ bytes: [UInt8]) -> Bool { SecretBytes(bytes).isPlainText }

  @Test func controlCharactersAreEscaped() {
    #expect(
      "a\u{1B}[31mb\u{7}\r\n\t\u{7F}\u{9B}\u{202E}".printable
        == #"a\u{1B}[31mb\u{7}\r\n\t\u{7F}\u{9B}\u{202E}"#)
    #expect("\r\n".printable == #"\r\n"#)
  }

  /// Covers every scalar of these categories, and those that Unicode asks programs not to display.
  @Test func noCharacterThatATerminalObeysOrHidesRemains() {
    let categories: Set<Unicode.GeneralCategory> = [
      .control, .format, .lineSeparator, .paragraphSeparator, .surrogate,
    ]
    var seen: Set<Unicode.GeneralCategory> = []
    for number in UInt32(0)...0x10FFFF {
      guard let scalar = Unicode.Scalar(number) else { continue }
      let category = scalar.properties.generalCategory
      let selectsVariation =
        [0x180B...0x180D, 0xFE00...0xFE0F, 0xE0100...0xE01EF].contains { $0.contains(number) }
        || number == 0x180F
      let isHidden =
        categories.contains(category) || selectsVariation || (0xE0000...0xE0FFF).contains(number)
        || [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0].contains(number)
      guard isHidden else { continue }
      seen.insert(category)
      let text = String(scalar)
      let (shown, json) = (text.printable, text.printableJSON)
      let isASCII = (shown + (scalar == "\n" ? "" : json)).utf8.allSatisfy { (0x20...0x7E).contains($0) }
      if !isASCII || (isPlain(Array(text.utf8)) && !["\t", "\n"].contains(scalar)) {
        Issue.record("U+\(String(number, radix: 16))")
      }
    }
    #expect(seen.isSuperset(of: [.control, .format, .lineSeparator, .paragraphSeparator]))
    // UTF-8 has no form for a surrogate, so these bytes are not text.
    for high in UInt8(0xA0)...0xBF { #expect(!isPlain([0xED, high, 0x80])) }
  }

  @Test func jsonKeepsItsMeaning() throws {
    let text = "a\u{1B}\u{9B}\u{202E}\u{200B}\u{E0041}\u{FE0F}\u{E0100}\r\n\t\"\\ü🔑"
    let json = String(decoding: try JSONEncoder().encode([text]), as: UTF8.self).printableJSON
    #expect(json.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
    let again = try JSONDecoder().decode([String].self, from: Data(json.utf8))
    #expect(again[0].unicodeScalars.elementsEqual(text.unicodeScalars))
  }

  @Test func aCarriageReturnAloneIsNotPlain() {
    #expect(isPlain(Array("a\r\nb\r\n".utf8)))
    for text in ["a\rb", "a\r", "a\r\rb\n"] { #expect(!isPlain(Array(text.utf8))) }
  }

  @Test func otherCharactersAreKept() {
    let text = #"naïve “quotes” \n 秘密 🔑 /a b"#
    #expect(text.printable.utf8.elementsEqual(text.utf8))
    #expect("e\u{301}".printable.utf8.elementsEqual("e\u{301}".utf8))
  }
}

@Suite struct SecretReferenceTests {
  @Test(arguments: [
    ("secret://s/a", "s", "a"), ("secret://com.example/a%2Fb", "com.example", "a/b"),
    ("secret://%25/%c3%A9", "%", "é"),
  ]) func validReference(_ text: String, _ service: String, _ account: String) throws {
    let identifier = try #require(try SecretReference.identifier(text))
    #expect(identifier.service == service)
    #expect(identifier.account == account)
  }

  @Test(arguments: [
    "secret://", "secret://s", "secret://s/", "secret:///a", "secret://s/a/b", "secret://s/%",
    "secret://s/%2",
    "secret://s/%zz", "secret://s/%FF", "secret://s/%00",
  ]) func invalidReference(_ text: String) {
    #expect(throws: (any Error).self) { try SecretReference.identifier(text) }
  }

  @Test func otherTextIsNotAReference() throws {
    #expect(try SecretReference.identifier("Secret://s/a") == nil)
    #expect(try SecretReference.identifier("a") == nil)
  }
}

@Suite struct NearNameTests {
  @Test func onlySimilarNamesAreSuggested() {
    let names = ["github-token", "gitlab-token", "db"]
    #expect(MissingSecret.nearest(to: "github-tokne", among: names) == "github-token")
    #expect(MissingSecret.nearest(to: "GITHUB-TOKEN", among: names) == "github-token")
    #expect(MissingSecret.nearest(to: "gitlab_tken", among: names) == "gitlab-token")
    #expect(MissingSecret.nearest(to: "slack-token", among: names) == nil)
    #expect(MissingSecret.nearest(to: "x", among: names) == nil)
    #expect(MissingSecret.nearest(to: "", among: names) == nil)
  }
}

@Suite struct WordListTests {
  private let words = WordList.words().map { String(decoding: $0, as: UTF8.self) }

  @Test func thereAre2048WordsOf3To7LowerCaseLetters() {
    #expect(words.count == 2048)
    #expect(
      words.allSatisfy {
        (3...7).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x61...0x7A).contains($0) }
      })
  }

  @Test func noWordIsThePrefixOfAnother() {
    // In alphabetical order, words with a common prefix are adjacent.
    #expect(words == words.sorted())
    #expect(zip(words, words.dropFirst()).allSatisfy { !$1.hasPrefix($0) })
  }
}

@Suite struct SecureRandomTests {
  @Test func everyNumberHasTheSameProbability() {
    // A remainder of 16 random bits would favor the first 25,536 of 40,000 numbers: 15,585 of 20,000 draws instead of
    // 12,768, whose standard deviation is 68.
    var count = 0
    for _ in 0..<20_000 where SecureRandom.number(below: 40_000) < 25_536 { count += 1 }
    #expect(abs(count - 12_768) < 1000)
  }
}
