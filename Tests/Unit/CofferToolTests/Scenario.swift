import Foundation

/// A script of commands with the expected result of each. A file has one or more of them.
///
/// ```
/// == A title                begins another script, with a private directory of its own
/// # A comment.
/// % gpg pass                the programs that the script needs, apart from the usual ones, or the trait Keyring
/// $ secret get NAME         a shell command; its further lines begin with two spaces
/// < a line of its standard input
/// > a line of its standard output
/// ! a line of its standard error
/// ? 64                      its exit status, if it is not 0
/// ```
///
/// Without expected lines, an output must be empty. In expected lines, `*` stands for any characters, `{dir}` for the
/// private directory, a final `\` for a missing line feed, and the line `...` for any number of lines.
struct Scenario {
  struct Step {
    let line: Int
    var command: String
    var input: [String] = []
    var output: [String] = []
    var errors: [String] = []
    var status: Int32 = 0
  }
  struct Malformed: Error {
    let line: Int
  }

  private(set) var steps: [Step] = []
  private(set) var needs: [String] = []

  /// The scripts of a file.
  static func parse(_ text: String) throws -> [Scenario] {
    var scenarios: [Scenario] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if index == 0 || line.hasPrefix("== ") { scenarios.append(Scenario()) }
      if !line.hasPrefix("== ") { try scenarios[scenarios.count - 1].append(line, number: index + 1) }
    }
    return scenarios
  }

  private mutating func append(_ line: Substring, number: Int) throws {
    let content = String(line.dropFirst(2))
    switch line.prefix(2) {
    case "$ ": steps.append(Step(line: number, command: content))
    case _ where line.isEmpty || line.hasPrefix("#"): break
    case "% ": needs += content.split(separator: " ").map(String.init)
    case _ where steps.isEmpty: throw Malformed(line: number)
    case "  ": steps[steps.count - 1].command += "\n" + content
    case "< ", "<": steps[steps.count - 1].input.append(content)
    case "> ", ">": steps[steps.count - 1].output.append(content)
    case "! ", "!": steps[steps.count - 1].errors.append(content)
    case "? ":
      guard let status = Int32(content) else { throw Malformed(line: number) }
      steps[steps.count - 1].status = status
    default: throw Malformed(line: number)
    }
  }

  /// The text that the lines of a script stand for.
  static func text(_ lines: [String]) -> String {
    let joined = lines.map { $0 + "\n" }.joined()
    return joined.hasSuffix("\\\n") ? String(joined.dropLast(2)) : joined
  }

  static func matches(_ actual: String, _ expected: [String], directory: String) -> Bool {
    let wanted = text(expected).replacingOccurrences(of: "{dir}", with: directory)
    // By scalars, because CR followed by LF is a single character.
    func lines(_ text: String) -> [Substring] {
      text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { Substring($0) }
    }
    return matches(lines(actual)[...], lines(wanted)[...])
  }

  private static func matches(_ actual: ArraySlice<Substring>, _ expected: ArraySlice<Substring>) -> Bool {
    guard let pattern = expected.first else { return actual.isEmpty }
    if pattern == "..." {
      return (actual.startIndex...actual.endIndex).contains {
        matches(actual[$0...], expected.dropFirst())
      }
    }
    guard let line = actual.first, glob(Array(line.utf8)[...], Array(pattern.utf8)[...]) else { return false }
    return matches(actual.dropFirst(), expected.dropFirst())
  }

  private static func glob(_ text: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
    guard let first = pattern.first else { return text.isEmpty }
    if first == UInt8(ascii: "*") {
      return (text.startIndex...text.endIndex).contains { glob(text[$0...], pattern.dropFirst()) }
    }
    return text.first == first && glob(text.dropFirst(), pattern.dropFirst())
  }
}
