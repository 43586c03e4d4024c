import CofferCore
import CofferSimulation
import CofferTestSupport
import Foundation
import Testing

@testable import CofferTool

/// The forms of a value that `run --redact` finds, written here without the code of the tool.
@Suite struct RedactedFormTests {
  private func shown(_ text: [UInt8], _ chunk: Int, _ patterns: RedactionPatterns) -> [UInt8] {
    var output = OutputRedactor(patterns)
    var shown: [UInt8] = []
    for start in stride(from: 0, to: text.count, by: chunk) {
      shown += output.redact(text[start..<min(start + chunk, text.count)])
    }
    return shown + output.finish()
  }

  private func shown(_ text: String, _ chunk: Int, redacting value: String) -> String {
    String(decoding: shown(Array(text.utf8), chunk, patterns(value)), as: UTF8.self)
  }

  private func patterns(_ value: String) -> RedactionPatterns {
    RedactionPatterns([("A", SecretBytes(value))])
  }

  private static func hexadecimal(_ byte: UInt8, _ isUpper: Bool) -> String {
    String(format: isUpper ? "%02X" : "%02x", byte)
  }

  /// Every form but base64 of a value that is UTF-8.
  private static func forms(of value: String) -> [String] {
    let quoted = { (special: String) in
      String(value.flatMap { special.contains($0) ? ["\\", $0] : [$0] })
    }
    var forms = [
      value, value.replacingOccurrences(of: "\n", with: "\r\n"), quoted("\"$`\\"),
      value.replacingOccurrences(of: "'", with: "'\\''"), quoted(" !\"$&'()*,;<>?[\\]^`{|}"),
    ]
    for isUpper in [false, true] {
      let digits = value.utf8.map { hexadecimal($0, isUpper) }
      forms += ["", " ", ":", "\n", "\r\n", "\t", " :\n  "].map { digits.joined(separator: $0) }
      for (kept, space) in [("-._~", "%20"), ("*-._", "+"), ("-._~!'()*", "%20")] {
        forms.append(
          zip(value.utf8, digits).map { byte, digits in
            let scalar = Unicode.Scalar(byte)
            if scalar == " " { return space }
            let isKept =
              scalar.isASCII && (CharacterSet.alphanumerics.contains(scalar) || kept.utf8.contains(byte))
            return isKept ? String(scalar) : "%" + digits
          }.joined())
      }
      for html in ["", "<>&", "<>&'", "<>&'=", "'", "\""] {
        for style in 0..<8 { forms.append(json(value, style, isUpper, html)) }
      }
    }
    if !value.unicodeScalars.contains(where: { $0.value < 0x20 && !"\t\n".unicodeScalars.contains($0) }) {
      forms.append(
        quoted("'\\").replacingOccurrences(of: "\t", with: "\\t").replacingOccurrences(of: "\n", with: "\\n"))
    }
    return forms
  }

  private static func json(_ value: String, _ style: Int, _ isUpper: Bool, _ html: String = "") -> String {
    value.unicodeScalars.map { scalar in
      switch scalar {
      case _ where html.unicodeScalars.contains(scalar): return "\\u00" + hexadecimal(UInt8(scalar.value), isUpper)
      case "\"", "\\": return "\\\(scalar)"
      case "/" where style & 1 != 0: return "\\/"
      case "\n" where style & 2 != 0: return "\\n"
      case "\t" where style & 2 != 0: return "\\t"
      case _ where scalar.value < 0x20 || style & 4 != 0 && !scalar.isASCII:
        return scalar.utf16.map {
          "\\u" + hexadecimal(UInt8($0 >> 8), isUpper) + hexadecimal(UInt8($0 & 0xFF), isUpper)
        }.joined()
      default: return String(scalar)
      }
    }.joined()
  }

  private static let values = [
    "hunter2", "correct horse/battery+staple", "pä\"ss\\w😀rd'$`~", "<a&b>'(*)!", "tab\tand line\nend\u{1}",
    "%41+~.-_",
    " :leading",
    "-----BEGIN KEY-----\nMIIBOQIBAAJAVY6quuzCwyOWzymJ7C4zXjeV/232\nwt2ZgJZ1kHzjI73wnhQ3WQL7DFCSoi2l+6Uk\n",
  ]

  private func expectForms(of value: String, inReadsOf sizes: some Sequence<Int>) {
    let patterns = patterns(value)
    for form in Set(Self.forms(of: value.hasSuffix("\n") ? String(value.dropLast()) : value)) {
      for size in sizes {
        let shown = shown(Array("<p|\(form)|q>".utf8), size, patterns)
        #expect(shown == Array("<p|[A]|q>".utf8), "\(form), in reads of \(size)")
      }
    }
  }

  @Test(arguments: values) func everyFormIsFound(_ value: String) {
    expectForms(of: value, inReadsOf: [1, 7, 64])
  }

  @Test(.long, arguments: values) func everyFormIsFoundInEveryRead(_ value: String) {
    expectForms(of: value, inReadsOf: 1...64)
  }

  /// The value stands at different offsets in a longer text. The first and the last base64 character may also hold bits
  /// of its neighbours.
  @Test(arguments: values, [[UInt8]("+/".utf8), [UInt8]("-_".utf8)]) func base64IsFoundInALongerText(
    _ value: String, _ last: [UInt8]
  ) {
    let value = [UInt8]((value.hasSuffix("\n") ? String(value.dropLast()) : value).utf8)
    let patterns = RedactionPatterns([("A", SecretBytes(value))])
    for (before, after) in [
      ("", ""), ("u:", ""), ("us:", ""), ("use", "r"), ("", "end"), ("name:", "\u{1}?"),
    ] {
      let text = Array(before.utf8) + value + Array(after.utf8)
      for isPadded in [false, true] {
        var characters = Data(text).base64EncodedString().utf8.map {
          $0 == UInt8(ascii: "+") ? last[0] : $0 == UInt8(ascii: "/") ? last[1] : $0
        }
        if !isPadded { characters.removeAll { $0 == UInt8(ascii: "=") } }
        let start = (before.utf8.count * 8 + 5) / 6
        let end = after.isEmpty ? characters.count : ((before.utf8.count + value.count) * 8 + 5) / 6
        for width in [5, 76, 1000] {
          for lineEnd in ["\n", "\r\n"] {
            func lines(_ range: Range<Int>) -> [UInt8] {
              range.flatMap { ($0 > 0 && $0 % width == 0 ? Array(lineEnd.utf8) : []) + [characters[$0]] }
            }
            let gap = start > 0 && start % width == 0 ? Array(lineEnd.utf8) : []
            let expected = lines(0..<start) + gap + Array("[A]".utf8) + lines(end..<characters.count)
            for chunk in [1, 64] {
              #expect(
                shown(lines(0..<characters.count), chunk, patterns) == expected, "\(before) \(width) \(chunk)"
              )
            }
          }
        }
      }
    }
  }

  @Test(arguments: ["a", "ab", "0-=-"], [8, 300, 3000]) func aValueThatIsLikeItselfIsFoundWhereverItBegins(
    _ unit: String, _ length: Int
  ) {
    let value = String(repeating: unit, count: length)
    let patterns = patterns(value)
    for separator in ["", " ", "\t\n"] {
      let digits = value.utf8.map { Self.hexadecimal($0, false) }.joined(separator: separator)
      for form in [value, digits] {
        for (before, after) in [("", ""), (String(form.suffix(7)), ""), ("", String(form.prefix(9)))] {
          let shown = String(decoding: shown(Array("<\(before)\(form)\(after)>".utf8), 100, patterns), as: UTF8.self)
          let isShort = shown.contains("[A]") && shown.utf8.count < 30
          #expect(isShort, "\(separator) \(form.prefix(10)): \(shown.prefix(100))")
        }
      }
    }
  }

  @Test func aLineOfAValueIsFound() {
    let value = "-----BEGIN KEY-----\r\nMIIBOQIBAAJAVY6q+uzC\r\nshort\r\n"
    for form in [
      "MIIBOQIBAAJAVY6q+uzC", "MIIBOQIBAAJAVY6q%2BuzC",
      Data("x MIIBOQIBAAJAVY6q+uzC".utf8).base64EncodedString(),
    ] {
      #expect(shown("<\(form)>", 3, redacting: value).hasSuffix("[A]>"), "\(form)")
    }
    #expect(shown("short MIIBOQ", 3, redacting: value) == "short MIIBOQ")
  }

  /// A value longer than the limit up to which every form of it is searched: with lines, in one line, and with a
  /// character at the limit.
  @Test(arguments: [
    (0..<4000).map { "line \($0) of a long value" }.joined(separator: "\n"),
    (0..<20000).map { "\($0 * 7919)+" }.joined(),
    "x" + String(repeating: "\u{1F511}", count: 40_000) + "\"",
  ])
  func aLongValueIsFoundAndOtherFormsOfItsBeginning(_ value: String) {
    let patterns = patterns(value)
    #expect(value.utf8.count > PatternWriter.limit(for: [value.utf8.count]))
    let whole = String(decoding: shown(Array("<\(value)>".utf8), 30_000, patterns), as: UTF8.self)
    #expect(whole.replacing("[A]", with: "").replacing("\n", with: "") == "<>")
    let beginning = String(decoding: value.utf8.prefix(66_000), as: UTF8.self)
    for form in [
      Data(beginning.utf8).base64EncodedString(), beginning.utf8.map { Self.hexadecimal($0, true) }.joined(),
      Self.json(beginning, 6, false),
    ] {
      let rest = shown(Array(form.utf8), 30_000, patterns)
      #expect(rest.starts(with: Array("[A]".utf8)) && rest.count < form.utf8.count / 8)
    }
  }

  @Test func formsOfManyValuesAreLimitedTogether() {
    #expect(PatternWriter.limit(for: [16_777_216]) == 65_536)
    #expect(PatternWriter.limit(for: Array(repeating: 200, count: 10_000)) == 65_536)
    #expect(PatternWriter.limit(for: Array(repeating: 70_000, count: 1000)) == 2048)
  }

  @Test func whatIsNotAFormIsShown() {
    for text in [
      "hunter3", "aHVudGVyMw==", "68756e7465723", "hunte%32", "aHVudGVy", "aHVu-dGVyMg==", "68 75 6e-74 65 72 32",
    ] {
      #expect(shown(text, 5, redacting: "hunter2") == text)
    }
  }

  @Test func anyRunOfSeparatorsStandsBetweenTheBytes() {
    // The second is how openssl prints a number.
    for text in ["aHVu\n\n\n\ndGVyMg==", "68:75:6e:\n        74:65:\n        72:32", "6 8\r\n\r\n7 5 6e 74 65 72 32"] {
      #expect(shown(text, 5, redacting: "hunter2") == "[A]")
    }
  }

  @Test func overlappingValuesAreRedactedTogether() {
    func shown(_ text: String, _ values: String...) -> String {
      var whole = ""
      for size in [1, 2, 3, 7, 100] {
        let patterns = RedactionPatterns(values.enumerated().map { ("V\($0)", SecretBytes($1)) })
        var redactor = OutputRedactor(patterns)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: text.utf8.count, by: size) {
          bytes += redactor.redact(Array(text.utf8.dropFirst(start).prefix(size))[...])
        }
        let found = String(decoding: bytes + redactor.finish(), as: UTF8.self)
        #expect(whole.isEmpty || found == whole, "with pieces of \(size)")
        whole = found
      }
      return whole
    }
    #expect(shown("to https://host/path/token now", "https://host/", "/path/token") == "to [V0][V1] now")
    #expect(shown("abcdefgh", "abcdefgh", "bcde", "cdef") == "[V0]")
    #expect(shown("xabcdefghx", "abcdef", "cdefgh", "efgh") == "x[V0][V1]x")
    #expect(shown("tokentoken", "token") == "[V0][V0]")
    #expect(shown("aaaaaaa", "aaaa") == "[V0]")
    let long = (0..<1000).map { "\($0 * 7919 % 1000)" }.joined()
    #expect(shown("<\(long)>", long, "token") == "<[V0]>")
    // A part of a long value is a part of the secret.
    #expect(!shown(String(long.dropFirst(300).prefix(900)), long).contains(long.dropFirst(600).prefix(200)))
  }

  /// In JSON's escapes, each byte of such a value would be written as nothing at all.
  @Test(arguments: [[0x95, 0x95, 0x95, 0x95], [0x95, 0x95, 0x95, 0x41]] as [[UInt8]])
  func valuesThatAreNotUTF8AreRedactedAndNothingElse(_ value: [UInt8]) {
    let patterns = RedactionPatterns([("X", SecretBytes(value.span))])
    let rest = [UInt8]("ABA A".utf8)
    for chunk in 1...9 { #expect(shown(value + rest, chunk, patterns) == [UInt8]("[X]".utf8) + rest) }
  }

  @Test func valuesWithTooFewBytesBesidesSeparatorsAreNotRedacted() {
    for value in ["abc", "a b:c", "    ", "ab\n\n\nc"] {
      let isRedacted = PatternWriter.canRedact(value.utf8.span)
      #expect(!isRedacted)
      #expect(shown("<\(value)>", 1, redacting: value) == "<\(value)>")
    }
    #expect(shown("<a b:cd>", 1, redacting: "a b:cd") == "<[A]>")
  }

  @Test func randomValuesAreFoundAndTheirNeighboursStay() { expectRandomValues(0..<100) }

  @Test(.long, arguments: 0..<10) func manyRandomValuesAreFound(_ part: UInt64) {
    expectRandomValues(part * 1000..<(part + 1) * 1000)
  }

  /// A failure names the seed, from which `SeededRandom` makes the same value again.
  private func expectRandomValues(_ seeds: Range<UInt64>) {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      func bytes(_ count: ClosedRange<Int>, _ range: ClosedRange<UInt8>) -> [UInt8] {
        (0..<Int.random(in: count, using: &random)).map { _ in UInt8.random(in: range, using: &random) }
      }
      let value = bytes(8...40, seed.isMultiple(of: 3) ? 0...255 : 33...126)
      // The neighbours of a form must not continue its escapes or its digits.
      let (before, after) = (
        bytes(0...20, 65...90) + [UInt8(ascii: "|")], [UInt8(ascii: "|")] + bytes(0...20, 65...90)
      )
      let patterns = RedactionPatterns([("A", SecretBytes(value))])
      guard PatternWriter.canRedact(value.span), value.last != UInt8(ascii: "\n") else {
        continue
      }
      var forms = [value, Array(value.map { Self.hexadecimal($0, true) }.joined().utf8)]
      if let text = String(validating: value, as: UTF8.self) {
        let all = Self.forms(of: text)
        forms += (0..<3).map { _ in Array(all[Int.random(in: all.indices, using: &random)].utf8) }
      }
      for form in forms {
        let shown = shown(before + form + after, Int.random(in: 1...64, using: &random), patterns)
        #expect(shown == before + Array("[A]".utf8) + after, "seed \(seed)")
      }
    }
  }

  /// The search does not depend on the number of patterns, or on what they have in common.
  @Test func eachOfManyValuesIsFound() {
    let values = (0..<300).map { "postgres://user:\($0)-\($0 * 7919)@host" }
    let patterns = RedactionPatterns(values.map { ($0, SecretBytes($0)) })
    let shown = shown(Array(values.joined(separator: "\n").utf8), 100, patterns)
    #expect(String(decoding: shown, as: UTF8.self) == values.map { "[\($0)]" }.joined(separator: "\n"))
  }
}
