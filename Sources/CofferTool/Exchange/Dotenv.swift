internal import Coffer

/// Files of `NAME=value` lines, which set the environment of programs and containers: the subset that all
/// readers of such files interpret in the same way.
///
/// - A line is `NAME=value`, `NAME = value` or `export NAME=value`, or blank. A byte order mark may precede the first.
///   A comment begins with a `#` at the beginning of a line or after a blank.
/// - An unquoted value contains no blanks, quotes, `$`, backslashes or backquotes.
/// - A value in single quotes is verbatim, and may contain line ends.
/// - A value in double quotes may contain line ends, and the escapes `\n`, `\r`, `\t`, `\\`, `\"`, `\$` and
///   `` \` ``. It contains no other backslash, `$` or backquote, which some readers would expand.
/// - Names are distinct. Lines end with LF or CRLF.
enum Dotenv {
  struct Entry {
    let name: String
    let value: SharedSecret
    /// The line where the entry begins, from 1 on.
    let line: Int
  }

  struct Problem: Hashable {
    let line: Int
    /// Completes the sentence "Line 3 …". Never contains a part of a value.
    let text: String
  }

  /// The entries of `text` in order. Throws a failure that names the invalid lines.
  static func entries(in text: borrowing SecretBytes, of file: String) throws(Failure) -> [Entry] {
    let (entries, problems) = text.withBytes { DotenvParser.parse($0) }
    if problems.isEmpty { return entries }
    let most = 5
    var sentences = problems.prefix(most).map { "Line \($0.line) \($0.text)." }.joined(separator: " ")
    if problems.count > most { sentences += " Invalid lines not listed: \(problems.count - most)." }
    throw Failure(.damaged, "\(file) cannot be read. \(sentences)")
  }

  /// `value` in quotes, for after the equals sign, or `nil` if it contains a NUL.
  static func quoted(_ value: borrowing SecretBytes) -> SecretBytes? {
    value.withBytes { bytes in
      if bytes.indices.contains(where: { bytes[$0] == 0 }) { return nil }
      let hasQuote = bytes.indices.contains { bytes[$0] == UInt8(ascii: "'") }
      let escaped = hasQuote ? Set("\\\"$`".utf8) : []
      return TemplateFilter.escaped(bytes, most: 2, in: hasQuote ? "\"" : "'") {
        escaped.contains($0) ? "\\" + String(Unicode.Scalar($0)) : nil
      }
    }
  }
}
