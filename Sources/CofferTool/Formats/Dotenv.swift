internal import Coffer

/// Files of `NAME=value` lines, as programs and containers read their environment from: the strict core that all
/// readers of such files agree on.
///
/// - `NAME=value`, with `export` before it or not; blank lines; comments from a `#` at the beginning of a line or
///   behind a blank.
/// - A value without quotes has no blanks, quotes, `$`, backslash or backquote in it.
/// - Between single quotes everything is as it is, line ends too.
/// - Between double quotes, line ends too, `\n`, `\r`, `\t`, `\\`, `\"`, `\$` and `` \` `` are escapes, and there is
///   no other backslash, no bare `$` and no bare backquote: some readers would put something else in their place.
/// - No name comes twice. Lines end with LF or CRLF.
enum Dotenv {
  struct Entry {
    let name: String
    let value: SharedSecret
    /// Where it begins, from 1 on.
    let line: Int
  }

  struct Problem: Hashable {
    let line: Int
    /// Completes "Line 3 …". Never a part of a value.
    let text: String
  }

  /// All entries of `text` in their order. Throws a failure that names all lines it cannot take.
  static func entries(in text: borrowing SecretBytes, of file: String) throws(Failure) -> [Entry] {
    let (entries, problems) = text.withBytes { DotenvParser.parse($0) }
    if problems.isEmpty { return entries }
    let most = 5
    var sentences = problems.prefix(most).map { "Line \($0.line) \($0.text)." }.joined(separator: " ")
    if problems.count > most { sentences += " There are \(problems.count - most) more such lines." }
    throw Failure(.damaged, "\(file) cannot be read. \(sentences)")
  }

  /// `value` as it is written behind the equals sign. `nil` where it has a NUL in it.
  static func quoted(_ value: borrowing SecretBytes) -> SecretBytes? {
    let (hasQuote, hasNUL) = value.withBytes { bytes in
      var found = (false, false)
      for index in bytes.indices {
        if bytes[index] == UInt8(ascii: "'") { found.0 = true }
        if bytes[index] == 0 { found.1 = true }
      }
      return found
    }
    if hasNUL { return nil }
    let quote = UInt8(ascii: hasQuote ? "\"" : "'")
    let escaped = hasQuote ? Set("\\\"$`".utf8) : []
    return value.withBytes { bytes in
      var count = bytes.count + 2
      for index in bytes.indices where escaped.contains(bytes[index]) { count += 1 }
      return SecretBytes(count: count) { block in
        block[0] = quote
        var next = 1
        for index in bytes.indices {
          if escaped.contains(bytes[index]) {
            block[next] = UInt8(ascii: "\\")
            next += 1
          }
          block[next] = bytes[index]
          next += 1
        }
        block[next] = quote
      }
    }
  }
}
